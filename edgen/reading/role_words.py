"""The words of other languages for a teacher and a student, as a line begins with them.

Each language has its words for the teacher, then for the student, with men's and women's forms; an
underscore stands for a blank. A word that also means a thing, a subject or an order would split turns, so
each word means people only, such as `Maître`, `docente` and `élève`.
"""

from __future__ import annotations

_WORDS: dict[str, tuple[str, str]] = {
    "Arabic": (
        "معلم المعلم معلمة المعلمة مدرس المدرس أستاذ الأستاذ أستاذة الأستاذة",
        "طالب الطالب طالبة الطالبة تلميذ التلميذ تلميذة التلميذة",
    ),
    "Bengali": ("শিক্ষক শিক্ষিকা", "ছাত্র ছাত্রী শিক্ষার্থী"),
    "Bulgarian": ("учител учителка преподавател", "ученик ученичка студент студентка"),
    "Catalan": ("professor professora mestre mestra", "alumne alumna estudiant"),
    "Chinese": ("老师 老師 教师 教師 导师 導師", "学生 學生 同学 同學"),
    "Croatian": ("učitelj učiteljica nastavnik nastavnica", "učenik učenica student studentica"),
    "Czech": ("učitel učitelka", "žák žákyně student studentka"),
    "Danish": ("lærer læreren underviser", "elev studerende"),
    "Dutch": ("leraar lerares leerkracht docent docente", "leerling student studente"),
    "Finnish": ("opettaja", "oppilas opiskelija"),
    "French": (
        (
            "professeur professeure prof enseignant enseignante maître maîtresse instituteur institutrice "
            "tuteur tutrice"
        ),
        "élève étudiant étudiante apprenant apprenante écolier écolière",
    ),
    "German": (
        "lehrer lehrerin lehrkraft lehrperson dozent dozentin tutor tutorin professor professorin",
        "schüler schülerin lernende lernender student studentin studierende studierender",
    ),
    "Greek": (
        "δάσκαλος δασκάλα καθηγητής καθηγήτρια εκπαιδευτικός",
        "μαθητής μαθήτρια φοιτητής φοιτήτρια",
    ),
    "Hebrew": ("מורה המורה", "תלמיד התלמיד תלמידה התלמידה סטודנט הסטודנט סטודנטית הסטודנטית"),
    "Hindi": ("शिक्षक शिक्षिका अध्यापक अध्यापिका गुरु गुरुजी", "छात्र छात्रा विद्यार्थी शिष्य"),
    "Hungarian": ("tanár tanárnő", "diák tanuló"),
    "Indonesian": ("guru dosen", "siswa murid mahasiswa pelajar"),
    "Italian": (
        "insegnante professore professoressa prof maestro maestra docente tutor",
        "studente studentessa alunno alunna allievo allieva",
    ),
    "Japanese": ("先生 教師 講師 教員", "生徒 学生 児童"),
    "Korean": ("선생님 선생 교사 강사", "학생"),
    "Norwegian": ("lærer læreren", "elev student"),
    "Persian": ("معلم استاد", "دانش‌آموز دانشجو شاگرد"),
    "Polish": ("nauczyciel nauczycielka", "uczeń uczennica student studentka"),
    "Portuguese": ("professor professora prof docente mestre mestra tutor tutora", "aluno aluna estudante"),
    "Romanian": ("profesor profesoară profesoara", "elev elevă elevul student studentă"),
    "Russian": (
        "учитель учительница преподаватель преподавательница педагог",
        "ученик ученица студент студентка",
    ),
    "Slovak": ("učiteľ učiteľka", "žiak žiačka"),
    "Spanish": (
        "profesor profesora profe maestro maestra docente tutor tutora",
        "estudiante alumno alumna",
    ),
    "Swahili": ("mwalimu", "mwanafunzi"),
    "Swedish": ("lärare läraren lärarinna", "elev student studenten"),
    "Tamil": ("ஆசிரியர்", "மாணவர் மாணவன் மாணவி"),
    "Thai": ("ครู อาจารย์", "นักเรียน นักศึกษา"),
    "Turkish": ("öğretmen", "öğrenci"),
    "Ukrainian": (
        "вчитель вчителька учитель учителька викладач викладачка",
        "учень учениця студент студентка",
    ),
    "Vietnamese": (
        "giáo_viên giảng_viên thầy cô thầy_giáo cô_giáo gia_sư",
        "học_sinh sinh_viên học_viên học_trò trò",
    ),
}
LANGUAGES = {
    language: tuple(tuple(word.replace("_", " ") for word in words.split()) for words in by_role)
    for language, by_role in _WORDS.items()
}
