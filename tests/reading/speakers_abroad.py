"""Turns in every supported language in which the other side speaks.

An opening sentence, a reply, and labels of both roles, bare and with the article where the language has one.
"""

from __future__ import annotations

# language: an opening, a reply, labels of the teacher, labels of the student
ABROAD: dict[str, tuple[str, str, tuple[str, ...], tuple[str, ...]]] = {
    "Arabic": (
        "هذا تخمين جيد.", "ولكن لماذا يحدث ذلك؟",
        ("معلم", "المعلم", "المعلمة", "الأستاذ"), ("طالب", "الطالب", "الطالبة", "التلميذ"),
    ),
    "Bengali": ("এটা ভালো অনুমান।", "কিন্তু এমন কেন হয়?", ("শিক্ষক", "শিক্ষিকা"), ("ছাত্র", "ছাত্রী", "শিক্ষার্থী")),
    "Bulgarian": ("Това е добра идея.", "Но защо е така?", ("Учител", "Учителка"), ("Ученик", "Ученичка")),
    "Catalan": ("És una bona idea.", "Però per què passa això?", ("Professora", "Mestra"), ("Alumne", "Alumna", "Estudiant")),
    "Chinese": ("这个想法很好。", "可是为什么会这样呢？", ("老师", "教师", "老師"), ("学生", "同学", "學生")),
    "Croatian": ("To je dobra ideja.", "Ali zašto je to tako?", ("Učitelj", "Nastavnica"), ("Učenik", "Učenica")),
    "Czech": ("To je dobrý nápad.", "Ale proč to tak je?", ("Učitel", "Učitelka"), ("Žák", "Žákyně", "Studentka")),
    "Danish": ("Det er et godt bud.", "Men hvorfor er det sådan?", ("Lærer", "Læreren"), ("Elev", "Studerende")),
    "Dutch": (
        "Dat is goed geraden.", "Maar waarom is dat zo?",
        ("Leraar", "De leraar", "De lerares", "Docent"), ("Leerling", "De leerling", "Een leerling", "De studente"),
    ),
    "Finnish": ("Hyvä arvaus.", "Mutta miksi niin käy?", ("Opettaja",), ("Oppilas", "Opiskelija")),
    "French": (
        "C'est une bonne idée.", "Mais pourquoi est-ce ainsi ?",
        ("Professeur", "Le professeur", "La maîtresse", "L'enseignante"), ("Élève", "L'élève", "L’étudiant", "Une élève"),
    ),
    "German": (
        "Das ist gut geraten.", "Aber warum ist das so?",
        ("Lehrer", "Der Lehrer", "Die Lehrerin", "Lehrkraft"), ("Schüler", "Der Schüler", "Die Schülerin", "Ein Schüler"),
    ),
    "Greek": ("Αυτή είναι καλή ιδέα.", "Αλλά γιατί συμβαίνει αυτό;", ("Δάσκαλος", "Καθηγήτρια"), ("Μαθητής", "Μαθήτρια")),
    "Hebrew": (
        "זה ניחוש טוב.", "אבל למה זה קורה?",
        ("מורה", "המורה"), ("תלמיד", "התלמיד", "התלמידה", "הסטודנט", "הסטודנטית"),
    ),
    "Hindi": (
        "यह अच्छा अनुमान है।", "लेकिन ऐसा क्यों होता है?", ("शिक्षक", "शिक्षिका", "अध्यापक"), ("छात्र", "छात्रा", "विद्यार्थी"),
    ),
    "Hungarian": ("Ez jó ötlet.", "De miért van ez így?", ("Tanár", "Tanárnő"), ("Diák", "Tanuló")),
    "Indonesian": ("Itu tebakan yang bagus.", "Tapi kenapa begitu?", ("Guru", "Dosen"), ("Siswa", "Murid")),
    "Italian": (
        "È una buona idea.", "Ma perché è così?",
        ("Insegnante", "L'insegnante", "Il professore", "La maestra"), ("Studente", "Lo studente", "L'alunna", "La studentessa"),
    ),
    "Japanese": ("よい考えです。", "でも、どうしてですか？", ("先生", "教師", "講師"), ("生徒", "学生", "児童")),
    "Korean": ("좋은 생각이에요.", "그런데 왜 그런가요?", ("선생님", "교사", "강사"), ("학생",)),
    "Norwegian": ("Det er en god tanke.", "Men hvorfor er det slik?", ("Lærer", "Læreren"), ("Elev",)),
    "Persian": ("حدس خوبی است.", "اما چرا این‌طور می‌شود؟", ("معلم",), ("دانش‌آموز", "شاگرد")),
    "Polish": (
        "To dobry pomysł.", "Ale dlaczego tak jest?", ("Nauczyciel", "Nauczycielka"), ("Uczeń", "Uczennica", "Studentka"),
    ),
    "Portuguese": (
        "É uma boa ideia.", "Mas por que é assim?",
        ("Professor", "O professor", "A professora"), ("Aluno", "O aluno", "A aluna", "Um estudante"),
    ),
    "Romanian": ("Este o idee bună.", "Dar de ce este așa?", ("Profesor", "Profesoara"), ("Elev", "Elevă")),
    "Russian": (
        "Это хорошая мысль.", "Но почему это так?", ("Учитель", "Учительница", "Преподаватель"), ("Ученик", "Ученица", "Студент"),
    ),
    "Slovak": ("To je dobrý nápad.", "Ale prečo je to tak?", ("Učiteľ", "Učiteľka"), ("Žiak", "Žiačka")),
    "Spanish": (
        "Es una buena idea.", "¿Pero por qué es así?",
        ("Profesor", "El profesor", "La maestra", "La profe"), ("Estudiante", "El alumno", "La alumna", "Un estudiante"),
    ),
    "Swahili": ("Hilo ni wazo zuri.", "Lakini kwa nini iko hivyo?", ("Mwalimu",), ("Mwanafunzi",)),
    "Swedish": ("Det är en bra gissning.", "Men varför är det så?", ("Lärare", "Läraren"), ("Elev",)),
    "Tamil": ("அது நல்ல யோசனை.", "ஆனால் ஏன் அப்படி?", ("ஆசிரியர்",), ("மாணவர்", "மாணவி")),
    "Thai": ("นั่นเป็นความคิดที่ดี!", "แต่ทำไมถึงเป็นอย่างนั้น?", ("ครู", "อาจารย์"), ("นักเรียน", "นักศึกษา")),
    "Turkish": ("Bu iyi bir fikir.", "Ama neden böyle?", ("Öğretmen",), ("Öğrenci", "Bir öğrenci")),
    "Ukrainian": (
        "Це гарна думка.", "Але чому це так?", ("Вчитель", "Учителька", "Викладач"), ("Учень", "Учениця", "Студент"),
    ),
    "Vietnamese": (
        "Ý đó hay lắm.", "Nhưng tại sao lại như vậy ạ?",
        ("Giáo viên", "Thầy", "Cô giáo", "Thầy giáo"), ("Học sinh", "Sinh viên", "Học viên", "Trò"),
    ),
}  # fmt: skip
ABROAD_LAYOUTS = {
    "line": "{0}\n{1}: {2}",
    "middle of a line": "{0} {1}: {2}",
    "bold": "{0}\n**{1}:** {2}",
    "full-width colon": "{0}\n{1}：{2}",
    "space before the colon": "{0}\n{1} : {2}",
    "brackets": "{0}\n[{1}]: {2}",
    "quoted": '{0}\n{1}: "{2}"',
    "paragraph": "{0}\n\n- {1}: {2}",
}
