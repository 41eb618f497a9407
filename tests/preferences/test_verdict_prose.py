"""Judges that answer in prose: texts that count as a verdict, and texts that must never be read as one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgen.reading.answers.verdict import read_verdict
from tests.cases import each
from tests.dose import dose
from tests.preferences.test_verdict import exchanged

ONE = [
    "I would choose the first one.",
    "### Analysis\n\n**Interaction 1**\n- Clear explanations\n- Encourages questions\n\n**Interaction 2**\n- Teacher is dismissive\n\n### Verdict\n\nInteraction 1 is better.\n\n**Output: 1**",
    '{"choice": "1", "reason": "Interaction 2 is more passive."}',
    "Although Interaction 2 is more enthusiastic, Interaction 1 is better overall.",
    "While Interaction 2 shows better enthusiasm, I believe Interaction 1 is the better interaction.",
    "The first interaction is superior. In it the student asks 2 questions.", "The former is better.",
    "Interaction 2 would have been better had the teacher not given up. Therefore I choose Interaction 1.",
    "1. Clarity: Interaction 1 is clearer.\n2. Engagement: Interaction 1 is more engaging.\n\nOverall: 1",
    "Output: 1\n\nExplanation: Interaction 1 is better because 2 of the criteria are met.",
    "I prefer Interaction 1 to Interaction 2.", "Interaction 1 is the more effective one overall.\n\nOutput: 1",
    "Teacher 1 is better.", "I disagree that Interaction 2 is better. Output: 1",
    '{"interaction_1": {"score": 8}, "interaction_2": {"score": 6}, "winner": 1}',
    "The order does not matter. First: good. Second: less so. My answer is the first.",
    "Interaction 2 is longer and the better known format. 1", "1. Interaction 1 is better",
    "Answer: 2 has problems, so I would pick 1.", "Output: 2 suffers from a teacher who gives up. I therefore output 1.",
    "Interaction 2 is better at keeping things short. However, Interaction 1 is stronger in participation.\n\n1",
    "The student in Interaction 2 says the teacher is boring and gives up. In contrast, in Interaction 1 the student asks questions and feels comfortable.\n\nTherefore, Interaction 1 is better.\n\n1",
    "Both are tied on clarity, but Interaction 1 is better on participation and comfort.\n\n**1**",
    "Interaction 1 is better. The teacher in Interaction 2 doesn't know whether the student prefers diagrams.\n\n1",
    "Interaction 1 is better.", "The first one is better.", "answer is 1", "The answer is 1.", "My answer is Interaction 1.",
    "The answer is $\\boxed{1}$.", "<think>2 is nice, but</think>\n1",
    "<think>\nInteraction 2 is better.\n</think>\n\nInteraction 1", "I would choose Interaction 1.", "I'd say 1.",
    "I prefer the first interaction.", "I choose 1", "1 because the teacher encourages questions.", "1, because it is clearer.",
    "1\n\nThe teacher encourages questions, and the student feels comfortable.", "1 - the teacher is kinder.", "1: it is clearer",
    "1.\n\nInteraction 1 is better because the second teacher never asks.", "Interaction 1 is clearly the better one.",
    "Interaction 1 is better than Interaction 2.", "Interaction 1 is better than 2 because of its questions.",
    "The better interaction is Interaction 1.", "Interaction 1 is slightly better overall.",
    "Interaction 2 is good, but Interaction 1 is better.",
    "In Interaction 2 the teacher does not listen, so Interaction 1 is better.",
    "Compared to Interaction 2, Interaction 1 is better.", "**Interaction 1**\nclear\n**Interaction 2**\ndull\n\n**Answer: 1**",
    "Assuming that they continue, response 1 will likely lead to a better interaction.", "Interaction 1 is better in every way.",
    "The teacher in the first takes 3 steps and asks 2 questions.\n\n1", "Output: 1 because the teacher listens.",
    "Answer: 1, because the teacher listens.", "Between Interaction 2 and Interaction 1, the latter is better.",
    "I'd choose the first conversation because the teacher listens.", "After careful consideration, my choice is Interaction 1.",
    "After weighing both, I choose Interaction 1.",
    "Response 1 is more likely to lead to a better interaction because it asks a question.",
    "I would choose Interaction 1 over Interaction 2.", "## Conclusion\nInteraction 1 is better overall.",
    "The teacher in Interaction 1 is warm.\n\nThus, I would output 1.", "I would output 1.",
    "Therefore, I would choose Interaction 1 as the better one.",
    "Therefore, Interaction 1 is better as it encourages questions.",
    "1\n\nInteraction 1 is better because the teacher encourages participation. In contrast, Interaction 2 has a dismissive teacher.",
]  # fmt: skip
TWO = [
    "Interaction 2 is better.", "I'd go with the second interaction.",
    "Let's compare them.\n\n**Interaction 1:** The teacher lectures and the student disengages.\n\n**Interaction 2:** The teacher invites questions and adapts.\n\nInteraction 2 better meets the criteria.\n\n**2**",
    "<think>\nFirst, Interaction 1 is better at ... hmm, wait. Interaction 2 has more questions. So 2.\n</think>\n\n2",
    '```json\n{"better_interaction": 2, "reasoning": "The teacher in interaction 2 adapted."}\n```',
    "The better interaction is **2**.", "Interaction 1 is good, but Interaction 2 is better because the teacher listens.",
    "1. Clarity: both equal.\n2. Engagement: Interaction 2 has more.\n3. Comfort: Interaction 2.\n\nSo, Interaction 2.",
    "**Answer:** Interaction 2\n\nIn Interaction 1, the teacher lectures. In Interaction 2, the teacher asks.",
    "I prefer Interaction 2 over Interaction 1", "In Interaction 1 the student says 'I prefer 1 over 2'. Output: 2",
    "Interaction 1 is better structured, however the student in Interaction 2 is far more engaged. Output: 2",
    "| | Interaction 1 | Interaction 2 |\n|---|---|---|\n| Clarity | 3 | 4 |\n| Comfort | 2 | 5 |\n\n**2**",
    "Interaction 1 has the weaker teacher, so the answer is Interaction 2.",
    "Interaction 1 is better than most, but Interaction 2 is the best.",
    "The second interaction is clearly better than the first one.",
    "Interaction 2 is better because unlike in interaction 1 the student was encouraged.",
    "Clarity: Interaction 1 is better\nEngagement: the second\nComfort: the second\nOverall: the second",
    "Better in clarity: 1\nBetter in engagement: 2\nBetter overall: 2", "2 (because the student is more engaged)",
    "Between Interaction 1 and Interaction 2, the latter is better.", "Of the two, interaction 2 is the better one.",
    "I'd pick 2, since 1 ends abruptly.", "Interaction 1 is the worst of the two. Output: 2",
    "The stronger interaction is number 2.", "The student in Interaction 1 says the teacher is the best. Output: 2",
    "Both interactions show a teacher explaining the water cycle.\n\n**Interaction 1** has a better opening and a stronger explanation of evaporation, but the student has few chances to speak.\n\n**Interaction 2** is more balanced. The teacher asks for the student's ideas.\n\n**Output: 2**",
    "**Comparison:**\n\n| Criterion | Interaction 1 | Interaction 2 |\n|---|---|---|\n| Clarity | Better | Good |\n| Engagement | Fair | Better |\n\nInteraction 1 is better at clarity, but Interaction 2 is better overall.\n\n**Answer: 2**",
    "To decide, I look at clarity, enthusiasm, participation.\n\n1. **Clarity**: Interaction 1 is better.\n2. **Enthusiasm**: Interaction 2 is better.\n3. **Participation**: Interaction 2 is better.\n\nOverall, Interaction 2 is better.\n\n2",
    "If we only looked at length, Interaction 1 would be better. But it is the second that fits.\n\nOutput: 2",
    "Both are equally clear. The difference is in participation. Output: 2",
    "It is hard to judge enthusiasm from text, but Interaction 2 is better overall.\n\n2",
    "Actually, both teachers present clearly, but the second one adapts. Output: 2",
    "Wait, let me re-read. Interaction 1 ends with the student giving up. Interaction 2 ends with understanding. Output: 2",
    "Neither interaction is perfect, but Interaction 2 is better.\n\n2",
    "Neither teacher is particularly good at listening. **2**",
    'Here\'s my assessment:\n- Interaction 1: the student says "I can\'t tell which is better"\n- Interaction 2: the student is engaged\n\nAnswer: 2',
    "Answer: 2\n\nInteraction 1 has a better structure, but Interaction 2 has more participation.",
    "2\n\nInteraction 1 is clear but one-sided. The student cannot tell what is asked.",
    "The final choice is 2.\n\nNote: The two are comparable in length.",
    '{\n  "reason": "He says 1.",\n  "answer": 2,\n  "sure": "very"\n}', "The student says the answer is 1.\n\nInteraction 2",
    "Response 2 is better because the teacher listens.",
    "<|channel|>analysis<|message|>1 looks fine<|end|><|start|>assistant<|channel|>final<|message|>2",
    "The teacher in Interaction 1 lectures. The student in Interaction 2 asks. Therefore, Interaction 2 is better.",
    "Interaction 1 is better at explaining, but it does not invite questions. Overall, Interaction 2 is better.",
    "Step 1: compare clarity.\nStep 2: compare questions.\n\nFinal answer: 2",
    "In conclusion, I would pick the second interaction.", "The second interaction is superior.", "The second is better.",
    "I think Interaction 2 is better, since its 10 turns hold 1 joke and 8 questions.",
    "Interaction 1 is worse than Interaction 2.\n\n2", "The winner is 2.", "2; it is livelier.",
    "Although both are good, Interaction 2 stands out as the better one.", "If I had to choose, I would choose Interaction 2.",
    "Interaction 2, however, is better.", "**2**\n\n**Explanation:** Interaction 2 asks while Interaction 1 lectures.",
    "2\n\n1. It invites questions.\n2. It is clear.", "## Verdict\nInteraction 2 is better.",
    "Verdict:\nInteraction 2 is better because it is warm.", "Final verdict: Interaction 2 is better.",
    "Overall: Interaction 2 is better.", "**Overall:** Interaction 2 is better because it is livelier.",
    "Interaction 2 is better because the teacher asks, while in Interaction 1 the teacher lectures.",
    "The latter is the better one.", "I prefer the latter.", "Interaction 2\n\nReasoning: the teacher in Interaction 2 listens.",
    "Considering all the criteria, Interaction 2 is better.",
    "Based on the criteria provided, Interaction 2 is the better interaction.",
    "Interaction 2 is the better interaction because the teacher encourages questions and active participation.",
    "I believe that Interaction 2 is better.", "In my opinion, Interaction 2 is the better one.",
    "I think interaction 2 is better because the teacher does not interrupt.", "Interaction 2 is better than Interaction 1.",
    "Interaction 2 is better than Interaction 1 because it is kind.", "The better interaction is Interaction 2.",
    "The better interaction is 2.", "The answer is Interaction 2.", "Therefore, the answer is 2.",
    "So the better interaction is Interaction 2.", "Which interaction is better? Output: 2", "Which interaction is better?\n2",
    'Here it is:\n```json\n{\n  "analysis": "Interaction 1 is better.",\n  "answer": 2\n}\n```',
    "<reasoning>1 is nice</reasoning>\n<answer>2</answer>", "<answer>2</answer><reasoning>1 is dull</reasoning>",
    "1 is dull. Output: 2", "Interaction 1 is fine; Interaction 2 is better.", "I will go with Interaction 2.",
    "Verdict: **Interaction 2** is better.", "Considering these factors, I would choose Interaction 2.",
    "Given these considerations, Interaction 2 is better.", "Based on these criteria, Interaction 2 is better.\n\nOutput: 2",
    "Interaction 2 is clearly the better interaction overall.", "Interaction 2 is clearly better.",
    "Interaction 2 is the better choice because it is warm. The teacher there listens to the student.",
    "**2**\n\nInteraction 2 better fosters active participation. While Interaction 1 is clear, the student stays passive.",
]  # fmt: skip
NONE = [
    "I can't decide between them.", "Interaction 1 is better in terms of clarity, while Interaction 2 is better in engagement.",
    "Interaction 2 would be better if the teacher had encouraged questions. ", "As an AI, I cannot judge teachers.",
    "Neither interaction is good. Interaction 1 is bad; Interaction 2 is also bad.", "I don't think Interaction 1 is better.",
    "| | Interaction 1 | Interaction 2 |\n|---|---|---|\n| Clarity | 3 | 4 |\n| Total | 1 | 2",
    "Interaction 1 is better than average, and so is Interaction 2.", "One might say Interaction 2 is better.",
    "Step 1\nThe teacher is clear.",
    "Interaction 1 is much better than I expected for a lecture. Interaction 2 is excellent though.",
    "Part 1: ... Part 2: ... Overall preference: none",
    "Interaction 1 shows stronger content knowledge from the teacher. Interaction 2 shows warmth.",
    "The teacher in Interaction 2 is the better lecturer. The student in Interaction 1 is more comfortable.",
    "Interaction 1: The teacher says the answer is 2.\nInteraction 2: The teacher never gives an answer.",
    "Interaction 1\nTeacher: What is 1 + 1?\nStudent: 2",
    "Teacher: So what is the result?\nStudent: The answer is 2.\nTeacher: Great!", "Let me solve it: the result is 2.",
    "In Interaction 1, the final answer is 2.", "The correct answer was 1.",
    "In terms of clarity, Interaction 1 is better. In terms of warmth, it is a draw.",
    "Clarity: Interaction 1 is better.\nEngagement: Interaction 2 is more active.\nRespect: about the same",
    "**Clarity:** Interaction 1 is better.\n**Engagement:** similar.\n**Comfort:** similar.",
    "Winner in clarity: Interaction 1. Winner in engagement: neither.", "1. The teacher is clear.\n2. The student asks.",
    "Interaction 1 is preferable for a visual learner; Interaction 2 for others.",
    "Interaction 2 is the better example of a lecture. That is not what the criteria ask for.",
    "The teacher's best choice is 1 of the methods.",
    "I'm sorry, but the conversations were not included. Please send Interaction 1 and Interaction 2.",
    "I need more information to say whether Interaction 1 is better.", "Interaction 1 is better known as a lecture.",
    "Interaction 1 is best described as a monologue; the other is a real exchange.",
    "Interaction 1 is best characterized by rote. The second flows.", "Interaction 1 is best summarised as a lecture.",
    "Interaction 2 is best suited to shy learners.", "Interaction 1 is preferred by the student.",
    "Interaction 1 was favored by previous raters.", "Interaction 1 makes better use of examples.",
    "Interaction 1 makes better use of examples. Interaction 2 is far warmer, more open and more encouraging throughout.",
    "Interaction 1 demonstrates a stronger command of the subject. Interaction 2 lets the student lead, challenge and explore.",
    "Interaction 1 wins on clarity. The second is otherwise ahead.",
    "Interaction 1 has the edge on clarity. In all else the second leads.",
    "Interaction 1 has the advantage of clarity. In all else the second leads.", "The student says the answer is 2.",
    "Student: The answer is 2.", "The teacher explains that 1 is better than 0.", "The student asks if it is 1.",
    "Interaction 1 or 2 is better", "It is a tie.", "Neither is better.", "I have no preference.",
    "Interaction 1 is no better than Interaction 2.", "Interaction A is better.", "I like it.",
    "I'm sorry, but I can't help with that.", "I cannot judge these interactions.",
    "As an AI, I cannot decide whether 1 or 2 is better.", "Interaction 1 is better. Interaction 2 is better.",
    "1\n\nTherefore, Interaction 2 is better.", "Interaction 1 is better at explaining.",
    "Interaction 1 is better in terms of clarity, while Interaction 2 is more engaging.",
    "If the student likes books, Interaction 1 is better.", "It is hard to say whether Interaction 2 is better.",
    "Which is better, 1 or 2?", "Interaction 1 is better?", "Perhaps Interaction 2 is better.", "Interaction 1 is not better.",
    "Interaction 2 is worse.", "<think>\nInteraction 1 is better.", "Depending on the student, Interaction 1 is better.",
    "I cannot choose: 1", "Interaction 1.5 is better", "My answer is 1. Wait, no, 2.", "I pick 2! Just kidding, 1!",
    "Interaction 1 is better. 2.", "Clarity\nInteraction 1 is better.",
    "Engagement:\nInteraction 2 is more active.\nClarity:\nInteraction 1 is better.", "Interaction 1 is better. Output: 2",
    "Interaction 1 is better because the teacher listens.\n\n2", "1\n\nWait, actually 2 is better.",
    "1\n\nHmm, on reflection the second is richer.", "Interaction 1 is better as a lecture.",
    "Interaction 1 is better for shy students.", "Interaction 1 is better in terms of clarity.",
    "Interaction 1 is better than expected.", "Interaction 1 is better because it is clear, but Interaction 2 is warmer.",
    "Interaction 1 is better because it is clear, while Interaction 2 is more engaging.",
    'The student says "I see. Interaction 1 is better."', "The teacher says: Interaction 1 is better.",
    "In my first draft I said Interaction 1 is better.", "Student: I see.\nTeacher: Interaction 1 is better.",
    "Teacher: So what is it?\nStudent: 1\n\nInteraction 1 is better.", "Interaction 1's teacher is better.",
    "I prefer Interaction 1's teacher.", "I'd pick Interaction 1's student.",
    "Interaction 2 is dull and Interaction 1 is not. And more. The former is better.", "What is 1 + 1? 2",
    "Interaction 1\nThe teacher is patient.", "Interaction 1\nTeacher is patient\nInteraction 2",
    "Interaction 2 is better than Interaction 1 at explaining.", "Interaction 2 is better than Interaction 2.",
    "Response 1 would lead to a better interaction if the teacher asked.", "His answer is 2.", "The sum is 2.",
    "I would choose Interaction 1 if it were longer.", "I would choose Interaction 1 for beginners.",
    "I would choose Interaction 1 over a textbook.", "I would choose Interaction 1. If it were up to the student, that is.",
    "Interaction 1 is better; Interaction 2 is better.", "She argues that it is dull; Interaction 2 is better.",
    "Although one might say Interaction 2 is better, Interaction 1 is better.", "Interaction 1 is best known for its clarity.",
    "Interaction 1 is the best example of a lecture.", "Interaction 1 is the better of two evils.",
    "The first is better at first.", "Interaction 1 is better, at least at first.",
    "Interaction 1 is better, but not by the criteria.", "Interaction 1 is better on paper.",
    "Interaction 1 is better, or so it seems.", "Interaction 1 is better, most would say.",
    "Interaction 1 is better, said nobody ever.", "Interaction 1 is better. Not!", "Interaction 1 is better. Said nobody.",
    "Interaction 1 is better. That is what a superficial reader would say.", "Interaction 1 is better. This is wrong.",
    "Interaction 1 is better. At least for clarity.", "Interaction 1 is better. In clarity. In warmth the other is.",
    "My choice is Interaction 1. In clarity.", "Clarity? Interaction 1 is better.",
    "Clarity. Interaction 1 is better. Warmth. Interaction 2 is warmer.",
    "Interaction 1 makes better use of examples. Interaction 2 is far warmer, more open and more encouraging throughout, which is what the criteria ask for.",
    "Interaction 1 is better. But that is not what the criteria ask for.", "Interaction 1 is the better lecture.",
    "I would choose Interaction 1 to learn facts.", "I prefer Interaction 1 for clarity and Interaction 2 for warmth.",
    "I prefer Interaction 1 in clarity.", "My preference is Interaction 1 for clarity.", "Winner is Interaction 1 in clarity.",
    "Interaction 1 is better because it is longer. That alone would be misleading; the other one shows what the criteria want.",
    "Interaction 1 is better because of its length. Length is not a criterion. The criteria point to its rival.",
    "If we go by length, I would choose Interaction 1.", "By length, Interaction 1 is better.",
    "Going by the student's mood, Interaction 1 is better.", "While clarity counts, I would say Interaction 1 is better at it.",
    "The student is bored, so the teacher thinks that Interaction 1 is better.",
    "The student would say it is dull, so Interaction 1 is better.",
    "Overall, Interaction 1 is better in clarity. Overall, Interaction 2 is better in warmth.",
    "Interaction 1 is better than the other at clarity.", "Interaction 1 is better than the other teachers.",
    "I choose 1 of them.", "I pick 2 reasons.", "I choose 1 and 2.", "I choose 1 or 2.", "I choose 1, or maybe 2.", "1 because 2",
    "1 - Clarity is good in both", "2. Warmth: Interaction 1 is better.", "1. Interaction 2 is better",
    "The worse interaction is 1.", "Least preferred: 2", "Student preference: 2", "The student's preferred interaction: 1",
    "What matters is the first. The second interaction is better organised.", "Interaction 1 is superior to a textbook.",
    "Interaction 1 is stronger in content.", "Interaction 1 is the stronger of the openings.", "Interaction 1 is best avoided.",
    "Interaction 1 is better off without it.", "Interaction 1 is better left alone.",
    "Is it Interaction 1? I would choose Interaction 1?", "I never said I would choose Interaction 1.",
    "No one would say that I choose Interaction 1.", "The first is better and the second is better.",
    "The first interaction is better, the second is best.", "Teacher: 1 or 2?\nStudent: I choose 1.",
    "Student: Interaction 1 is better.", "Interaction 1 is better.\n\nInteraction 2 is better.\n\n1",
]  # fmt: skip
# Clear to a person, but phrased in too many ways to be read: retried, and never read as the other verdict.
UNREAD_ONE = [
    "Interaction 2 is worse than Interaction 1.", "Interaktion 1 ist besser.",
    "If I had to pick, I'd say Interaction 1, but it is close.", "1 > 2", "It's a close call, but 1.",
    "Better interaction: 1 (Interaction 2 suffers from a teacher who gives up)",
    "Some would argue Interaction 2 is better, but my choice is Interaction 1.",
    "The student would prefer Interaction 2. By the criteria given, the first one should be output.",
    "Interaction 2 is the better example of how not to teach. Interaction 1 follows the criteria.",
    "Verdict: Interaction 2's teacher is cold; Interaction 1 it is.", "Answer: Interaction 2 is weaker, so 1.",
    "Answer: 2 is weaker; 1.", "1. The teacher encourages questions.",
    "Both teachers are patient. Interaction 1 is better because it has more questions. It lets the student speak.",
]  # fmt: skip
UNREAD_TWO = [
    "1 is worse than 2.", "Interaction 1 is not better than Interaction 2.", "La interacción 2 es mejor.",
    "L'interaction 2 est meilleure.", "互动2更好。", "Die zweite Interaktion ist besser.", "インタラクション2の方が良いです。",
    "Interaction 2 > Interaction 1", "Based on the criteria, I'd rate Interaction 2 higher.",
    "The teacher in Interaction 2 does a better job of encouraging questions.",
    "Interaction 2 more closely aligns with the key elements of a good interaction.", "Actually, after reconsideration: 2",
    "Interaction 1 has better pacing. But Interaction 2 engages the student more fully, so it is my pick.",
    "Interaction 1 offers a better explanation of the topic, but the teacher in Interaction 2 invites questions and respects the student, which matters more.",
    "Interaction 1 provides a clearer structure and has the better opening. Interaction 2, though, is where the student actually participates, which the criteria value most.",
    "Interaction 1 has a stronger start. Interaction 2 has the stronger finish and more active participation; this one wins.",
    "At first glance Interaction 1 is better. However, looking closer, the teacher in the second conversation encourages questions, and that tips the balance.",
    "On the surface, Interaction 1 seems better. But it is the second that shows respect.",
    "Interaction 1 looks better on paper, yet the student in Interaction 2 learns more, and I would give it the nod.",
    "A naive reader would conclude that Interaction 1 is better. The other one is richer.",
    "Many graders prefer Interaction 1. This grader goes for the other.",
    "Interaction 1 would be my choice if clarity were all. As participation counts, it is the other one.",
    "I was going to choose Interaction 1, but the teacher there interrupts. So it has to be the other.",
    "I was tempted to pick Interaction 1, but on balance the second interaction is what the criteria describe.",
    "I almost chose Interaction 1, but the other is warmer.", "I'd hesitate to choose Interaction 1; the second is richer.",
    "I would avoid choosing Interaction 1.", "Rather than pick Interaction 1, I take the other.",
    "It would be a mistake to choose Interaction 1.", "It's tempting to say Interaction 1 is better. It isn't.",
    "Interaction 1 is better? No. The second is.", "You might think Interaction 1 is better. I'd disagree.",
    "If clarity alone counted, Interaction 1 is better. But engagement counts.",
    "For clarity, Interaction 1 is better. For everything else, the other.", "Clarity – 1\nEngagement – 2\nOverall – 2",
    "Interaction 1 isn't bad, but I'd lean towards Interaction 2.",
    "The only reason to prefer Interaction 1 is its length. The other is richer.",
    "There is little reason to prefer Interaction 1.", "Those who prefer Interaction 1 overlook the tone.",
    "A student who likes lectures would choose Interaction 1. The criteria favour the other.",
    "Students would prefer Interaction 1; the criteria however point to the second.",
    "I can see why one would prefer Interaction 1.", "Interaction 1 is better than Interaction 2? I think the opposite.",
    "My first impression: Interaction 1. My considered view: the second.",
    "Initial impression: Interaction 1 is better.\nOn reflection: the second interaction respects the student more.",
    "Initially, I preferred Interaction 1. On reflection the second shows more respect.",
    "Interaction 1 was better until the teacher gave up.",
    "Interaction 1 is better up to the midpoint; after that it collapses. The other one holds.",
    "Interaction 1 is slightly better explained. Interaction 2 is more engaging, and engagement is decisive.",
    "Interaction 1 is better organized, Interaction 2 is more respectful. The latter counts more.",
    "Interaction 1 is better paced.",
    "Interaction 1 has the better teacher, Interaction 2 the better dialogue; since dialogue is what counts, the second.",
    "Interaction 1 wins the clarity round. In all else the second leads.",
    "Interaction 1 wins points for clarity. In all else the second leads.",
    "Considering how the teacher engages the student, I choose 2.", "I rate the first 6/10 and the second 8/10, so 2.",
    "Interaction 1 is not better. Interaction 2 is better.",
    "Let us see. Interaction 2 provides a better environment for learning.", "Interaction 2 seems better.",
    "Interaction 2 is more effective because the student may disagree.", "1 or 2? 2", "Interaction no 2",
    "Interaction 2 is, overall, better.",
]  # fmt: skip


@each("text", ONE)
def test_one(text: str) -> None:
    assert read_verdict(text) == 1


@each("text", TWO)
def test_two(text: str) -> None:
    assert read_verdict(text) == 2


@each("text", NONE)
def test_none(text: str) -> None:
    assert read_verdict(text) is None


@each(("text", "right"), [*((text, 1) for text in UNREAD_ONE), *((text, 2) for text in UNREAD_TWO)])
def test_what_is_not_read_is_never_the_other_side(text: str, right: int) -> None:
    assert read_verdict(text) in (None, right)


@each("text", [*ONE, *TWO, *NONE, *UNREAD_ONE, *UNREAD_TWO])
def test_exchanging_the_sides_exchanges_the_verdict(text: str) -> None:
    before, after = read_verdict(text), read_verdict(exchanged(text))
    assert after == (None if before is None else 3 - before)


# Each praises a side without calling it the better one.
PRAISE = [
    "has better pacing", "makes better use of examples", "provides a better explanation", "offers stronger examples", "shows more warmth",
    "demonstrates a stronger command of the subject", "is better organised", "is better explained", "is better known", "is better paced", "is best described as a lecture",
    "is best suited to shy learners", "is better than average", "is better than expected", "is better at first", "is better for clarity", "is better in terms of clarity",
    "is better up to the middle", "is better on paper", "is better if clarity counts", "seems better on the surface", "is the better lecture", "is better as a lecture", "is almost better",
    "wins on clarity", "wins the first round", "has the edge on clarity", "is preferred by the student", "is stronger in content", "is superior to a textbook", "would be better with questions",
]  # fmt: skip


@pytest.mark.parametrize("praise", PRAISE)
def test_praise_is_no_verdict(praise: str) -> None:
    for choice in (1, 2):
        sentence = f"Interaction {choice} {praise}."
        assert read_verdict(sentence) is None
        assert (
            read_verdict(f"{sentence} Interaction {3 - choice} is warmer throughout, which matters more.")
            is None
        )
        assert read_verdict(f"Both are clear. {sentence}") is None
        assert read_verdict(f"{sentence}\n\nOutput: {3 - choice}") == 3 - choice


STATEMENTS = [
    "Interaction {} is better.", "Interaction {} is clearly the better one.", "Response {} is the best choice overall.", "I would choose Interaction {}.", "I prefer interaction {}.",
    "Interaction {} is better because the teacher asks.", "The better interaction is Interaction {}.", "My choice is Interaction {}.",
]  # fmt: skip
# Another person says it, or no one does.
FRAMES = [
    "Some say that {}", "It would be wrong to say that {}", "I doubt that {}", "One might think that {}", "If length counted, {}", "For clarity, {}", "In terms of warmth, {}", "At first glance, {}",
    "On the surface, {}", "The student says: {}", 'The student says "I see. {}"', "Many graders would say {}", "Perhaps {}", "Not that {}", "Clarity:\n{}", "Clarity\n\n{}", "Student: {}", "Is it so that {}",
    "{} Not really.", "{} But the criteria ask for something else.", "{} However, the other one is warmer.", "{} Wait, no.", "{} I disagree with that.", "{} Both are equally good, though.",
]  # fmt: skip


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_that_is_supposed_reported_or_taken_back_is_no_verdict(
    frame: str, statement: str
) -> None:
    for choice in (1, 2):
        assert read_verdict(statement.format(choice)) == choice
        assert read_verdict(frame.format(statement.format(choice))) is None


@pytest.mark.parametrize("statement", STATEMENTS)
def test_two_statements_that_differ_are_no_verdict(statement: str) -> None:
    for other in STATEMENTS:
        for between in (" ", " The student listens. ", "\n\n"):
            assert read_verdict(statement.format(1) + between + other.format(2)) is None
            assert read_verdict(statement.format(1) + between + other.format(1)) == 1


def test_the_latter_is_the_second_that_its_sentence_names() -> None:
    assert read_verdict("Between Interaction 1 and Interaction 2, the latter is better.") == 2
    assert read_verdict("Between Interaction 2 and Interaction 1, the latter is better.") == 1
    assert read_verdict("Between Interaction 2 and Interaction 1, I prefer the former.") == 2
    assert read_verdict("I prefer the former.") == 1
    assert read_verdict("The latter is better.") == 2
    assert read_verdict("Interaction 2 is dull. The latter is better.") is None


PARTS = st.sampled_from(
    [*PRAISE, *FRAMES, "Interaction 1 ", "Interaction 2 ", "the first one ", "The second interaction ", "I choose ", "is better", "because ", "while ", "although ", "but ", ", so ",
     "than ", ". ", ", ", "; ", "\n", "the other ", "Overall, ", "not "]
)  # fmt: skip


@given(st.lists(PARTS, max_size=14).map("".join))
@settings(max_examples=dose(25, 250), deadline=None)
def test_no_wording_prefers_a_side(text: str) -> None:
    choice = read_verdict(text)
    assert read_verdict(exchanged(text)) == (None if choice is None else 3 - choice)
