"""Texts that speak to whoever judges them: a signal of a pair, and a reason not to label it.

A person who teaches or learns does not speak of the interaction that he is in by its number, nor to an evaluator,
nor in the headings of a judge's prompt. A text that does is taken for one that would have the judge say something,
whether the judge fell for it or not. The forms stand below by what they do; each has those of several languages.
What is looked for is long enough that ordinary lessons do not have it: a false alarm takes a label away.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_SHOWN = 120  # characters of what was found
_INVISIBLE = re.compile(r"[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")

# What a judge's prompt calls the texts that it shows.
_NOUN = (
    r"(?:interactions?|conversations?|dialogues?|dialogs?|transcripts?|responses?|candidates?"
    r"|interaktion|gespräch|unterhaltung|antwort|interacción|conversación|diálogo|interazione|conversazione|dialogo"
    r"|interação|conversa|risposta|respuesta|resposta|réponse|interactie|gesprek|взаимодействие|диалог|разговор)"
)
_CJK_NOUN = r"(?:对话|對話|互动|互動|交互|会话|会話|対話|応答|回答|대화|상호작용|응답)"
_NUMBER = r"(?:#|no\.? ?|number |n[°º] ?)?(?:[12]|one|two)\b"
_JUDGE = (
    r"(?:judges?|evaluators?|graders?|raters?|annotators?|assessors?|oracle|reward model|llm judge|ai judge|grading model"
    r"|richter(?:in)?|gutachter(?:in)?|bewerter(?:in)?|juges?|évaluateurs?|évaluatrice|juez|jueces|evaluadora?|evaluadores"
    r"|giudice|giudici|valutatore|valutatrice|juiz|juíza|avaliadora?|avaliadores|rechter|beoordelaar|судья|судье|оценщик)"
)
_CHOOSE = (
    r"(?:choose|prefer|pick|select|favou?r|vote for|output|answer|respond with|reply with|say|declare"
    r"|wähle?|bevorzuge|nimm|choisi(?:r|s|ssez)|préfér(?:er|ez)|préfère|elij[ae]|elige|escoge|prefiere|selecciona"
    r"|scegli(?:ere|ete)?|preferisci|escolh[ae]|prefira|selecione|kies|выбери(?:те)?|предпочти(?:те)?)"
)
_BETTER = r"(?:better|best|superior|preferable|preferred|the winner|winning|besser|beste|meilleure?|mejor|migliore|melhor|beter|лучше)"
_IS = r"(?:is|was|wins?|ist|gewinnt|est|es|gana|è|vince|é|vence|wint)"

# Lines that look like a prompt's own: a heading, a rule, a fence, a chat template's marks.
_LINES = [
    rf"^\W{{0,8}}(?:the )?{_NOUN}[ _]?{_NUMBER}\W{{0,6}}(?::|begins?\b|ends?\b|$)",
    rf"^\W{{0,8}}{_CJK_NOUN} ?[12一二①②] ?\W{{0,4}}(?::|$)",
    r"^[ \t]*#{1,6}[ \t]*$",
    (
        r"^[ \t]*(?:output|verdict|final answer|final verdict|ausgabe|urteil|sortie|verdict final|salida|veredicto|saída|verdetto"
        r"|输出|輸出|出力|출력|вывод)[ \t]*:?[ \t]*[\"'(\[*]{0,3}[12][\"')\]*.]{0,3}[ \t]*(?:$|or\b)"
    ),
    r"^\W{0,8}(?:system|assistant|user|instructions?|task)(?: message| prompt)?[ \t]*:[ \t]*$",
    (
        r"^\W{0,8}(?:note|notice|message|instructions?|attention|hinweis|nota|remarque|aviso|avviso)[^\n:]{0,30}\b"
        rf"{_JUDGE}\b[^\n:]{{0,20}}:"
    ),
    r"<\|(?:im_start|im_end|system|user|assistant|end_of_turn|eot_id|start_header_id)\|>|\[/?inst\]|<<sys>>|</?system>",
]
# Sentences, wherever they stand.
_PHRASES = [
    # told to forget what it was told
    (
        r"\b(?:ignore|disregard|forget|override)\b (?:\w+ ){0,4}?(?:previous|prior|above|earlier|preceding|system|original)"
        r" (?:\w+ )?(?:instructions?|prompts?|directions?|criteria|rules|guidelines|orders)\b"
    ),
    (
        r"\b(?:ignore|disregard|forget)\b (?:all|everything|anything) (?:of )?(?:the |that is )?above\b"
        r"[^.\n]{0,20}\b(?:answer|output|say|choose|respond|reply)\b"
    ),
    r"\b(?:ignoriere|vergiss|missachte)\b (?:\w+ ){0,4}?(?:anweisung|instruktion|vorgabe|regel)",
    r"\b(?:ignore[zr]?|oublie[zr]?) (?:\w+ ){0,3}?(?:instructions|consignes|directives)\b",
    r"\b(?:ignora|ignore|olvida|olvide) (?:\w+ ){0,3}?(?:instrucciones|indicaciones)\b",
    r"\b(?:ignora|ignorare|dimentica) (?:\w+ ){0,3}?(?:istruzioni|indicazioni)\b",
    r"\b(?:ignore|esqueça|desconsidere) (?:\w+ ){0,3}?(?:instruções|orientações)\b",
    r"\b(?:negeer|vergeet) (?:\w+ ){0,3}?(?:instructies|aanwijzingen)\b",
    r"(?:игнорируй|проигнорируй|забудь)(?:те)? (?:\w+ ){0,3}?(?:инструкци|указани)",
    r"(?:忽略|无视|無視|忘记|忘掉)[^。\n]{0,12}(?:指令|指示|说明|說明|提示)",
    r"(?:指示|命令|プロンプト)[^。\n]{0,4}(?:無視|忘れ)",
    r"(?:지시|명령|지침)[^.\n]{0,6}(?:무시|잊)",
    r"تجاهل[^.\n]{0,20}(?:التعليمات|الأوامر|الإرشادات)",
    r"(?:निर्देश|आदेश)[^।\n]{0,16}(?:अनदेखा|नज़रअंदाज़|भूल)",
    # spoken to as the one who judges
    rf"\b(?:dear|hey|hello|attention|note to|note for|message to|message for|instructions? (?:to|for)) (?:the |all |any |our )?{_JUDGE}\b",
    rf"\bas (?:the|a|an) (?:impartial |fair |expert )?{_JUDGE}\b ?(?:,|you\b|:|of (?:this|these|the) (?:interactions?|conversations?|responses?))",
    rf"\b(?:als|en tant que?|como|come|in qualità di) (?:d\w+ |l\w+ |el |la |il |o |a )?(?:{_JUDGE})\b ?(?:,|:|musst|sollt|debes?|devi|deves?|dois|devez)",
    (
        rf"\b(?:the|an?|any|every|whichever) {_JUDGE} (?:of this \w+ )?(?:must|should|shall|will|has to|is to|needs? to)"
        rf" (?:\w+ ){{0,2}}?{_CHOOSE}\b"
    ),
    rf"\b{_JUDGE} ?[:,] (?:please |bitte |s'il vous plaît |por favor )?{_CHOOSE} (?:this|the first|the second|[12]\b)",
    r"\bas the (?:\w+ ){0,2}(?:evaluating|judging|rating|grading) (?:this|these|the) (?:interactions?|conversations?|dialogues?|transcripts?)\b",
    r"\bwhoever (?:\w+ ){0,2}?(?:rates|judges|evaluates|grades|compares) (?:this|these|the) (?:interactions?|conversations?|dialogues?|transcripts?)\b",
    rf"\b(?:lieber?|liebe|querid[oa]|estimad[oa]|chère?|car[oa]|gentile|prezad[oa]) {_JUDGE}\b",
    r"(?:作为|作為|身为|致|亲爱的|尊敬的)(?:一名|一位)?(?:评委|评判|裁判|评审|評審|評価者|法官)[，,:]",
    r"(?:评委|评判|裁判|评审|審査員|評価者)[^。\n]{0,4}(?:选择|選擇|选|選)[^。\n]{0,2}[12一二]",
    r"(?:審査員|評価者|判定者)(?:として|の皆|へ)|(?:심사위원|평가자|판정자)(?:로서|님|에게)",
    r"(?:أيها|عزيزي|بصفتك) (?:الحكم|المقيّم|المقيم|القاضي)|(?:प्रिय|हे) (?:निर्णायक|मूल्यांकनकर्ता|न्यायाधीश)",
    r"(?:निर्णायक|मूल्यांकनकर्ता) के रूप में",
    # told what to choose, or which is better, by a name that only a judge's prompt gives
    rf"\b{_CHOOSE}\b (?:\w+ ){{0,2}}?{_NOUN} {_NUMBER}",
    (
        rf"\b{_CHOOSE}\b (?:this|the first|the second|diese[sn]?|cette|est[ae]|questa|questo|essa|esta) "
        r"(?:interaction|conversation|dialogue|transcript|interaktion|gespräch|interacción|conversación|interazione|conversazione|interação|conversa)\b"
    ),
    rf"\b(?:{_NOUN} {_NUMBER}|(?:this|the (?:first|second)) (?:interaction|transcript)) {_IS} (?:\w+ ){{0,3}}?{_BETTER}\b",
    rf"(?:选择|選擇|选|偏好|输出|回答)[^。\n]{{0,6}}{_CJK_NOUN} ?[12一二]|{_CJK_NOUN} ?[12一二] ?(?:更好|较好|最好|の方が|이 더|가 더)",
    rf"{_CJK_NOUN} ?[12] ?(?:を選|을 선택|를 선택)",
    r"(?:اختر|فضّل|فضل) (?:المحادثة|التفاعل|الرد) (?:1|2|١|٢|الأولى?|الثاني)|(?:बातचीत|संवाद|वार्तालाप) [12१२] (?:को )?(?:चुन|बेहतर)",
    rf"\b{_JUDGE} (?:should|must|shall|will|to) (?:answer|output|choose|say|prefer|pick|respond)",
    # the words of a judge's prompt
    r"\bwhich (?:interaction|response will lead to a better)\b|\boutput (?:1|one) or (?:2|two)\b",
    r"\bdo not let the order\b|\bgood interaction between a teacher and\b|\bexpert at assess?ing teachers\b",
    r"\b(?:better|winning|preferred|chosen) (?:interaction|transcript)\b",
]
# Every form holds one of these: most turns have none, and are not looked at more closely.
_HELD = (
    "judge evaluator grader rater annotator assessor oracle model richter gutachter bewerter juge évaluat juez jueces "
    "evaluador giudic valutat juiz juíza avaliador rechter beoordelaar судь оценщик interact interakt interacci interazi "
    "interaçã conversa dialog diálogo transcript response candidate gespräch unterhaltung antwort resp risposta réponse "
    "взаимодействие диалог разговор 对话 對話 互动 互動 交互 会话 会話 対話 応答 回答 대화 상호작용 응답 # output verdict answer "
    "ausgabe urteil sortie veredicto saída verdetto salida 输出 輸出 出力 출력 вывод system assistant user instruction task <| "
    "inst <<sys>> previous prior above earlier preceding original anweisung instruktion vorgabe regel consigne directive "
    "instrucci indicaci istruzion instruç orientaç aanwijzing инструкц указани 指令 指示 说明 說明 提示 命令 プロンプト 지시 명령 "
    "지침 تجاهل निर्देश आदेश 评委 评判 裁判 评审 評審 評価者 法官 審査員 判定者 심사위원 평가자 판정자 الحكم المقيّم المقيم "
    "القاضي निर्णायक मूल्यांकनकर्ता न्यायाधीश المحادثة التفاعل الرد बातचीत संवाद वार्तालाप order assesing assessing"
)
_STEMS = tuple(_HELD.split())
_LINE = re.compile("|".join(f"(?:{form})" for form in _LINES), re.IGNORECASE | re.MULTILINE)
_PHRASE = re.compile("|".join(f"(?:{form})" for form in _PHRASES), re.IGNORECASE)


def judge_directed(text: str) -> str | None:
    """What in a text speaks to a judge or imitates a judge's prompt, as it was found; None if nothing does.

    Letters that only look wider, and characters that nobody sees, make no difference.
    """
    if not text.isascii():
        text = _INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    lower = text.lower()
    if not any(stem in lower for stem in _STEMS):
        return None
    text = "\n".join(text.splitlines())
    found = _LINE.search(text) or _PHRASE.search(" ".join(text.split()))
    return None if found is None else " ".join(found[0].split())[:_SHOWN]


def first_directed(texts: Iterable[str]) -> str | None:
    """What the first of several texts that speaks to a judge says to it."""
    return next((found for text in texts if (found := judge_directed(text)) is not None), None)
