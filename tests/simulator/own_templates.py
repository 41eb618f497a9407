"""Templates in the words of different authors, each with the two roles of its space.

`SEEN` was used while the simulator learnt to answer them. `HELD_OUT` was run for the first time when all of
`SEEN` were answered; of its 22 that a space could have, 21 were, too.
"""

SEEN = {
    "plain": (
        ("Tutor", "Learner"),
        "Write a dialogue between a tutor and a learner about {{ topic }}. The learner is {{ mood }}.",
    ),
    "ed-tutor": (
        ("Teacher", "Student"),
        "Write a dialogue between a tutor and a learner about {{ topic }}. The learner is {{ mood }}.",
    ),
    "upper": (
        ("Teacher", "Student"),
        "Write a dialogue about {{ topic }}.\nFormat:\nTEACHER: ...\nSTUDENT: ...",
    ),
    "tl-teacher": (
        ("Tutor", "Learner"),
        "Write a conversation between a teacher and a {{mood}} student about {{ topic }}.",
    ),
    "german": (
        ("Teacher", "Student"),
        "Schreibe ein Gespräch zwischen einem Lehrer und einer Schülerin über {{ topic }}. Die Schülerin ist {{ mood }}.",
    ),
    "spanish": (
        ("Teacher", "Student"),
        "Escribe un diálogo entre un profesor y una alumna sobre {{ topic }}.",
    ),
    "chinese": (
        ("Teacher", "Student"),
        "请写一段老师和学生之间关于{{ topic }}的对话。",
    ),
    "doctor": (
        ("Doctor", "Patient"),
        "A doctor explains {{ topic }} to a {{ mood }} patient. Write down what they say to each other, as a script.",
    ),
    "json": (
        ("Tutor", "Learner"),
        'Write a tutoring dialogue on {{ topic }} between Tutor and Learner. Return JSON: {"dialogue": [{"speaker": "Tutor", "utterance": "..."}, {"speaker": "Learner", "utterance": "..."}], "p_understood": 0.0}. p_understood is the probability that the learner understood.',
    ),
    "json-list": (
        ("Agent", "Customer"),
        'Customer support. Produce a chat between an agent and a customer about {{ topic }} as a JSON array of objects with the keys "from" and "text".',
    ),
    "jsonl": (
        ("Agent", "Customer"),
        'Customer support. Produce a chat between an agent and a customer about {{ topic }} as JSONL with the keys "speaker" and "text".',
    ),
    "json-byname": (
        ("Tutor", "Learner"),
        'Give me a dialogue on {{topic}} as JSON, like {"turns": [{"tutor": "..."}, {"learner": "..."}]}',
    ),
    "xml": (
        ("Tutor", "Learner"),
        "Simulate a tutoring session about {{ topic }}. Use this format:\n<conversation>\n<tutor>...</tutor>\n<learner>...</learner>\n</conversation>\n<probability>...</probability>\nwhere probability is how likely it is that the learner understood.",
    ),
    "xmlattr": (
        ("Tutor", "Learner"),
        'Simulate a tutoring session about {{ topic }}. Use this format:\n<dialogue>\n<turn speaker="tutor">...</turn>\n<turn speaker="learner">...</turn>\n</dialogue>',
    ),
    "xmlword": (
        ("Tutor", "Learner"),
        "A tutor and a learner discuss {{ topic }}. Wrap each turn in an XML tag named after the speaker.",
    ),
    "bold": (
        ("Tutor", "Learner"),
        "Create a lesson dialogue about {{topic}}. Write every turn like this:\n\n**Tutor:** ...\n\n**Learner:** ...\n\n10 turns.",
    ),
    "boldword": (
        ("Tutor", "Learner"),
        "Create a lesson dialogue between a tutor and a learner about {{topic}}. Put the speaker in bold (Markdown).",
    ),
    "boldphold": (
        ("Tutor", "Learner"),
        "Create a lesson dialogue between a tutor and a learner about {{topic}}. Each turn: **Name:** what they say",
    ),
    "bracket": (
        ("Nurse", "Visitor"),
        "Nurse and Visitor talk about {{topic}} in the hallway.\n[Nurse]: ...\n[Visitor]: ...\nAfter at most 8 turns they part with [end of conversation].",
    ),
    "numbered": (
        ("Tutor", "Learner"),
        "Dialogue, {{topic}}, six exchanges, numbered:\n1. Tutor: ...\n2. Learner: ...",
    ),
    "heading": (
        ("Tutor", "Learner"),
        "Make up a talk about {{topic}}.\n\n### Tutor\n...\n\n### Learner\n...\n",
    ),
    "table": (
        ("Tutor", "Learner"),
        "Make up a talk about {{topic}} as a table.\n| Speaker | Text |\n|---|---|\n| Tutor | ... |\n| Learner | ... |\n",
    ),
    "percent": (
        ("Tutor", "Learner"),
        "Write a dialogue between a tutor and a learner about {{ topic }}. At the end, on its own line, give the probability that the learner understood as a percentage.",
    ),
    "problabel": (
        ("Tutor", "Learner"),
        "Write a dialogue between a tutor and a learner about {{ topic }}.\nEnd with\nProbability of understanding: <number between 0 and 1>",
    ),
    "names": (
        ("Anna", "Ben"),
        "Anna knows all about {{topic}}. Ben does not; Ben is {{mood}}. Let Anna and Ben talk it over in 8 to 10 turns.",
    ),
    "animals": (
        ("Heron", "Fox"),
        "At the pond the heron teaches the fox about {{topic}}. Write it all down, line by line, with who speaks.",
    ),
    "system": (
        ("Tutor", "Learner"),
        "{% block system %}You are an author of realistic tutoring transcripts.{% endblock %}{% block user %}Topic: {{topic}}. Participants: a tutor, a {{mood}} learner. Between 6 and 8 turns.{% endblock %}",
    ),
    "roles-list": (
        ("Seller", "Buyer"),
        "Negotiation about {{topic}}.\nRoles:\n- Seller (friendly)\n- Buyer ({{mood}})\nWrite the transcript.",
    ),
    "speaker-generic": (
        ("Coach", "Athlete"),
        'A coach talks an athlete through {{topic}}. One line per utterance: "Speaker: utterance".',
    ),
    "no-json": (
        ("Tutor", "Learner"),
        "Write a dialogue between a tutor and a learner about {{topic}}. Plain text, no JSON, no markdown, no bold.",
    ),
    "yaml": (
        ("Tutor", "Learner"),
        "Write a dialogue between a tutor and a learner about {{topic}} as YAML:\n- speaker: Tutor\n  text: ...\n- speaker: Learner\n  text: ...\n",
    ),
    "quotes": (
        ("Tutor", "Learner"),
        'Write a dialogue about {{topic}}:\nTutor: "..."\nLearner: "..."\nTutor: "..."',
    ),
    "edbr": (
        ("Tutor", "Learner"),
        'Imagine a lesson on {{topic}}.\nDialogue:\n[\n  Tutor: "...",\n  Learner: "...",\n]\nProbability: "..."',
    ),
}

HELD_OUT = {
    "caps-pron": (
        ("Tutor", "Learner"),
        "I need a realistic transcript. Setting: an after-school club. One TUTOR helps one LEARNER ({{ mood }}) with {{ topic }}. Start with the tutor. No stage directions.",
    ),
    "italian": (
        ("Teacher", "Student"),
        "Scrivi una conversazione tra un insegnante e uno studente su {{ topic }}. Lo studente è {{ mood }}. Circa 10 battute.",
    ),
    "french": (
        ("Teacher", "Student"),
        "Imagine un dialogue entre une enseignante et un élève {{ mood }} à propos de {{ topic }}.",
    ),
    "russian": (
        ("Teacher", "Student"),
        "Напиши диалог между учителем и учеником на тему: {{ topic }}.",
    ),
    "mdlist": (
        ("Interviewer", "Candidate"),
        "# Task\nProduce a mock job interview.\n\n# Content\n- topic: {{ topic }}\n- the candidate is {{ mood }}\n\n# Output\n- **Interviewer**: question\n- **Candidate**: answer\n",
    ),
    "jsonschema-prose": (
        ("Librarian", "Reader"),
        "Write a chat between a librarian and a reader about {{ topic }}. Respond with valid JSON only. The top-level key is `messages`, a list in which each item has `sender` and `body`.",
    ),
    "tags": (
        ("Tutor", "Learner"),
        "Please write a tutoring session on {{topic}}.\n\nPut each of the tutor's turns between <tutor> and </tutor>, each of the learner's between <learner> and </learner>.",
    ),
    "alternate": (
        ("Mentor", "Apprentice"),
        "The apprentice asks the mentor questions about {{topic}}; the mentor answers patiently. They alternate, 12 turns altogether, beginning with the apprentice. Prefix each turn with the speaker's name and a colon.",
    ),
    "screenplay": (
        ("Guide", "Tourist"),
        "Write a short scene for a play.\n\nGUIDE\n(explains {{topic}})\n\nTOURIST\n(is {{mood}})\n\nFormat it as a screenplay: the name of the character on a line of its own, the words below it.",
    ),
    "prob100": (
        ("Coach", "Player"),
        "A coach teaches {{topic}} to a {{mood}} player. Write what is said, then on the last line 'Likelihood of success: NN%'.",
    ),
    "fewshot": (
        ("Tutor", "Learner"),
        "Here is an example:\nTutor: What is 2 + 3?\nLearner: Is it five?\nTutor: Right.\n\nNow write one like it about {{topic}} with a learner who is {{mood}}.",
    ),
    "angle": (
        ("Tutor", "Learner"),
        "Dialogue on {{topic}}. Use the format\n\n<Tutor>: <text>\n<Learner>: <text>\n\nand stop after 10 messages.",
    ),
    "german-own": (
        ("Lehrerin", "Kind"),
        "Erfinde eine Unterhaltung zwischen der Lehrerin und dem Kind über {{topic}}. Jede Zeile beginnt mit dem Namen der Person und einem Doppelpunkt.",
    ),
    "vague": (
        ("Customer", "Agent"),
        "{{ mood }} customer, patient agent. {{ topic }}. Full call transcript please.",
    ),
    "rows": (
        ("Tutor", "Learner"),
        "Generate a lesson on {{topic}} between a tutor and a learner as CSV-free plain text; each row reads `name | utterance`.",
    ),
    "numbers": (
        ("Host", "Guest"),
        "Radio talk show. Host interviews Guest on {{ topic }}. Number the turns: 1) Host: … 2) Guest: …",
    ),
    "three": (
        ("Tutor", "Learner"),
        "You will write a conversation in which Tutor teaches Learner {{topic}}.\n\nRules:\n1. Between 8 and 12 turns.\n2. Learner is {{mood}}.\n3. Close with [end of conversation].\n4. After it, give Probability: 0.0 to 1.0 that Learner got it.",
    ),
    "dict": (
        ("Tutor", "Learner"),
        'Topic: {{topic}}\nReturn a JSON object with two keys, "transcript" (a list of {"speaker": "tutor" or "learner", "text": string}) and "probability" (float, that the learner understood).',
    ),
    "portuguese": (
        ("Teacher", "Student"),
        "Crie um diálogo entre uma professora e um aluno sobre {{topic}}, com a probabilidade (0 a 1) de que o aluno tenha entendido no final.",
    ),
    "user-assistant": (
        ("Caller", "Operator"),
        "Write a chat log in which a caller asks an operator about {{topic}}. Caller: ... Operator: ...",
    ),
    "blockquote": (
        ("Tutor", "Learner"),
        "A dialogue between tutor & learner re: {{topic}}.\n\n> **Tutor** — ...\n> **Learner** — ...\n",
    ),
    "learner-first": (
        ("Learner", "Tutor"),
        "The learner comes with a question about {{topic}} and the tutor helps. Output their dialogue, nothing else.",
    ),
    "emoji": (
        ("Tutor", "Learner"),
        "Make a chat about {{topic}}.\n👩\u200d🏫 Tutor: ...\n🧒 Learner: ...",
    ),
    "parens": (
        ("Tutor", "Learner"),
        "Write a dialogue between Ms. Lee (Tutor) and Sam (Learner) about {{topic}}.",
    ),
}

# A template for each role, and one for the closing question. Written when the templates above were answered:
# a simulator that knows its protocol answered 33 of these 35, a served one 12.
LATER = {
    "plainest": (("Teacher", "Student"), "A teacher and a student talk about {{ topic }}."),
    "ask": (
        ("Teacher", "Student"),
        "Please invent a short chat in which a student who is {{ mood }} asks their teacher about {{ topic }}.",
    ),
    "polish": (("Teacher", "Student"), "Napisz rozmowę nauczyciela z uczniem o {{ topic }}."),
    "japanese": (("Teacher", "Student"), "{{ topic }}についての先生と生徒の会話を書いてください。"),
    "arabic": (("Teacher", "Student"), "اكتب حوارا بين معلم وطالب عن {{ topic }}."),
    "dutch": (
        ("Teacher", "Student"),
        "Schrijf een gesprek tussen een leraar en een leerling over {{ topic }}.",
    ),
    "hindi": (("Teacher", "Student"), "{{ topic }} के बारे में शिक्षक और छात्र के बीच बातचीत लिखिए।"),
    "turkish": (
        ("Teacher", "Student"),
        "{{ topic }} hakkında bir öğretmen ile öğrenci arasında geçen bir konuşma yaz.",
    ),
    "korean": (("Teacher", "Student"), "{{ topic }}에 대해 선생님과 학생이 나누는 대화를 써 주세요."),
    "parents": (
        ("Librarian", "Reader"),
        "Imagine a quiet library. The librarian wants to help a {{ mood }} reader who looks for books on {{ topic }}. Give me what they say.",
    ),
    "shakespeare": (
        ("King", "Jester"),
        "Write a scene as in a play: KING and JESTER debate {{ topic }}. Names in capitals, then a full stop, then what they say.",
    ),
    "dash": (("Host", "Guest"), "A radio interview. Host and Guest on {{ topic }}.\nHost - ...\nGuest - ..."),
    "time": (
        ("Agent", "Customer"),
        "Chat log with timestamps about {{ topic }}:\n[10:01] Agent: ...\n[10:02] Customer: ...",
    ),
    "csv": (
        ("Agent", "Customer"),
        "Chat of Agent and Customer on {{ topic }} as CSV with the columns speaker,text.",
    ),
    "messages": (
        ("Agent", "Customer"),
        'Produce {"messages": [{"role": "agent", "content": "..."}, {"role": "customer", "content": "..."}]} for a chat on {{ topic }}.',
    ),
    "chatml": (
        ("Agent", "Customer"),
        "Use ChatML for a chat on {{ topic }}:\n<|im_start|>agent\n...<|im_end|>\n<|im_start|>customer\n...<|im_end|>",
    ),
    "qa": (
        ("Expert", "Novice"),
        "Q&A between a Novice and an Expert about {{ topic }}. Novice asks five questions, Expert answers each.",
    ),
    "email": (
        ("Manager", "Employee"),
        "An exchange of emails between a manager and an employee on {{ topic }}; three emails each.",
    ),
    "sections": (
        ("Mentor", "Mentee"),
        "# Task\nWrite the mentoring talk.\n# Input\ntopic = {{ topic }}\nmood = {{ mood }}\n# Rules\n1. The mentor never gives the answer.\n2. The mentee is {{ mood }}.\n# Output\nMentor: text\nMentee: text\n",
    ),
    "swapped": (("Learner", "Tutor"), "Tutor explains {{ topic }}; Learner listens and asks. Write it."),
    "plural": (
        ("Parent", "Child"),
        "What would parents and children say about {{ topic }}? Write one such conversation between one parent and one child.",
    ),
    "plural2": (("Parent", "Child"), "Parents and children argue about {{ topic }}. Write such a talk."),
    "underscore": (
        ("Senior_Dev", "Junior_Dev"),
        "A senior dev reviews {{ topic }} with a junior dev. Write their chat.",
    ),
    "underscore2": (
        ("Senior_Dev", "Junior_Dev"),
        "Code review on {{ topic }}.\nSenior_Dev: ...\nJunior_Dev: ...",
    ),
    "possessive": (
        ("Nurse", "Patient"),
        "The nurse's job is to calm the patient's fear of {{ topic }}. Transcript:",
    ),
    "you": (
        ("Doctor", "Patient"),
        "You are a playwright. Doctor meets patient; subject: {{ topic }}; the patient is {{ mood }}; ten lines of dialogue.",
    ),
    "toml": (
        ("Tutor", "Learner"),
        'Tutor, Learner, {{ topic }}. TOML please: [[turn]]\nspeaker = "Tutor"\ntext = "..."',
    ),
    "html": (
        ("Tutor", "Learner"),
        "Tutor and Learner on {{ topic }} as HTML: <p><b>Tutor:</b> ...</p><p><b>Learner:</b> ...</p>",
    ),
    "latex": (
        ("Tutor", "Learner"),
        "Tutor and Learner on {{ topic }} as LaTeX: \\item[Tutor] ... \\item[Learner] ...",
    ),
    "prob-fr": (
        ("Teacher", "Student"),
        "Un dialogue entre le professeur et l'élève sur {{ topic }}. Termine par Probabilité : un nombre entre 0 et 1.",
    ),
    "conf": (
        ("Tutor", "Learner"),
        "Tutor and learner on {{ topic }}. Finally, state your confidence (0-100) that the learner got it.",
    ),
    "portuguese-later": (
        ("Teacher", "Student"),
        "Escreve um diálogo entre um professor e um aluno sobre {{ topic }}.",
    ),
    "russian-later": (("Teacher", "Student"), "Напиши разговор учителя с учеником на тему {{ topic }}."),
    "angle-later": (
        ("Host", "Guest"),
        "<Host> asks, <Guest> answers, on {{ topic }}. IRC log:\n<Host> ...\n<Guest> ...",
    ),
    "emoji-later": (
        ("Tutor", "Learner"),
        "Tutor and Learner on {{ topic }}.\n🧑\u200d🏫 Tutor: ...\n🧒 Learner: ...",
    ),
}

AGENTS = {
    "write-next": (
        ("Tutor", "Learner"),
        "You tutor someone in a conversation about {{topic}}. Write your next line of the dialogue. When you are done, end with [end of conversation].",
        "You are in a dialogue with a tutor about {{topic}} and you are {{mood}}. Write your next line of the dialogue. Close with [end of conversation] if you like. 6 to 10 turns.",
        None,
    ),
    "sys": (
        ("Tutor", "Learner"),
        "{% block system %}You're Mia, a tutor. Help the learner with {{topic}}. Keep it short, one message at a time.{% endblock %}{% block user %}Hello!{% endblock %}",
        "{% block system %}Play Jo, a {{mood}} learner of {{topic}}. Only ever write Jo's own words.{% endblock %}{% block user %}Start.{% endblock %}",
        "On a scale from 0 to 1, how much of {{topic}} did you take away? Reply with a number only.",
    ),
    "german": (
        ("Teacher", "Student"),
        "Du bist Lehrerin und sprichst mit einem Schüler über {{topic}}. Schreibe nur deine nächste Äußerung.",
        "Du bist Schüler in einem Gespräch über {{topic}}. Antworte nur mit deiner nächsten Äußerung.",
        None,
    ),
    "json": (
        ("Nurse", "Patient"),
        'You are a nurse talking to a patient about {{topic}}. Reply with JSON {"text": "..."} holding what you say next in the conversation.',
        'You are a {{mood}} patient talking to a nurse about {{topic}}. Reply with JSON {"text": "..."} holding what you say next in the conversation.',
        "How likely is it (in percent) that you will follow the advice about {{topic}}? One number.",
    ),
    "generate-dialogue": (
        ("Tutor", "Learner"),
        "Generate the tutor's side of a dialogue about {{topic}}, one turn at a time.",
        "Generate the learner's side of a dialogue about {{topic}}, one turn at a time. The learner is {{mood}}.",
        "What is the probability from 0 to 100% that the learner understood?",
    ),
}
