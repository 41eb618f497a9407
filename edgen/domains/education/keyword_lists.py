"""The words by which keywords recognise ways of learning and teaching, wishes and reactions.

Each text holds keywords between bars. A keyword is adjacent words in lower case; a star stands for any
ending. The keywords are English. Families and kinds of reactions have the names of
`edgen.reading.phrase_kinds`.
"""

# Keywords of a family of ways, said by either side.
NAMED = {
    "lecture": "lectur*|direct instruction|take notes|the facts|listen and",
    "discussion": (
        "discuss*|debat*|talk about it|talk it through|talking about it|a conversation|interactive*|"
        "ask questions|ask some questions|asking questions|opinion*"
    ),
    "hands_on": (
        "hands on|experiment*|try it out|try it yourself|build|touch|real life|real world|everyday|"
        "daily life|simulate|activit*|field trip|with my hands|with your hands|materials|model|apply to my|"
        "in our lives|in your own life|current events|act it out"
    ),
    "creative": (
        "story|stories|game*|play|played|playing|creativ*|imagin*|draw it|act out|acting out|song|"
        "role play|invent*|puzzle*|fun way"
    ),
    "assessment": "quiz*|a test|short test|little test|assess*|question sheet|check whether|exam",
    "visual": (
        "diagram*|picture*|draw*|chart|charts|map|maps|sketch*|visual*|graph*|colour*|color*|on the board"
    ),
    "reading": (
        "read|reading|the text|a text|book|books|chapter|article*|passage|written down|summary|"
        "write it down|page|paragraph"
    ),
    "peer": (
        "partner|group|groups|team|classmate*|together with|person next to me|work together|each other|"
        "with somebody"
    ),
    "independent": (
        "on my own|on your own|by myself|by yourself|own pace|at your own|alone|explore|research|find out|"
        "figure it out|choose where|choose the|look into it"
    ),
    "project": (
        "project*|real problem|real case|a case|our case|problem to solve|solve it|something that matters|"
        "case study"
    ),
    "practice": (
        "practise|practice|exercise*|step by step|one more example|drill|repeat|show me one|once more|"
        "go over it again|worked example*|another example|in small steps"
    ),
    "technology": "video*|simulation*|computer|app|online|animation*|tablet|software|slider|clip",
    "coaching": (
        "feedback|hint|hints|one step at a time|guide me|one on one|at your speed|your time|"
        "my own interests|your interests|coach*|just us"
    ),
}

# Keywords of a family, said by a student only.
SOUGHT = {
    "lecture": (
        "tell me|tell us|told me|told us|explain*|teach me|teach us|taught|give me the answer*|"
        "give us the answer*|given|hear it from you|clear instructions|break it down|spell it out|"
        "instructions|through it once|notes|listen to you|from start to finish"
    ),
    "discussion": "talk about|discuss*|ask you|i ask and you|say what i think|hear what",
    "hands_on": (
        "interactive|engaging|try|relate it|apply|something practical|doing something|do something|lab|"
        "see it in action"
    ),
    "assessment": "questions to answer|asked and corrected|test me|quiz me|check my",
    "visual": "see it|show me",
    "practice": "try one|a few more|give me an example|more examples|show me an example",
    "coaching": "help me with|step by step|go through it together|work on next",
}

# Keywords of a family, said by a teacher only.
TAUGHT = {
    "lecture": (
        "let me explain|i'll explain|i will explain|let me tell you|i'll tell you|listen|definition|"
        "overview|note that down|write this down|my talk|as i was saying|let me break|keep explaining|"
        "let me give you the facts|to reiterate|let me reiterate"
    ),
    "discussion": (
        "what do you think|do you think|let's talk|your view|do you agree|why might|what would you|"
        "how do you feel|explore*|brainstorm*|what do you want to know|would you like to know|"
        "your thoughts|weigh it"
    ),
    "hands_on": (
        "try it|now try|try another|try this|let's try an|show me|use the|take this|take the|measure|"
        "put the pieces|let's walk|build me|let's build|let's make"
    ),
    "creative": "let's play|let's pretend|pretend|hero|for ten points|level two|scene",
    "assessment": (
        "question one|true or false|can you tell me|tell me what|explain how|explain what|summarise|"
        "summarize|name two|name three|quick check|scale from|next question|next item|presentation|"
        "write down in one sentence|how would you define|what did you learn"
    ),
    "visual": "look at|blue part|arrow|picture of",
    "reading": "underline|look up|the author|glossary|sources|in writing",
    "peer": "your partner|ask the group|two heads|swap|one of you",
    "independent": (
        "find out what|report back|decide yourself|you choose|set yourself|your own plan|i'll wait"
    ),
    "project": "the problem|a client|next line of the plan|your product|the case",
    "practice": (
        "another one|now you do|you do the|same exercise|step one|step two|number four|the first step|"
        "let's do one more"
    ),
    "technology": "tap on|pause the|run it again|log in",
    "coaching": (
        "where you get stuck|shall we go back|take your time|what would help you|small goal|your strength"
    ),
}

# A student's words for a wish.
WISHES = (
    "can we|could we|can you|could you|can't we|can't you|couldn't|can i|could i|may i|would you|i'd like|"
    "i would like|i'd love|i'd rather|i would rather|rather|i prefer|i'd prefer|i want|i wish|i need|"
    "learn best|learn better|could learn|do better|understand better|understand it better|works for me|"
    "helps me|what helps|hoping|i'd hoped|is there|isn't there|there must be|how about|what if|let's|"
    "why don't|why can't|please|just tell|just explain|just teach|just give|just listen|instead|"
    "where would i|which page|give me|show me"
)

# Keywords of a student's reaction.
STUDENT = {
    "adapts": (
        "i'll try|i will try|let me try|i can try|give it a chance|give it a try|give it a go|i'll adapt|"
        "your way|halfway|work with it|sounds better|that makes more sense|i suppose|getting used to|"
        "not my usual|okay but|fine but|i could try|i guess that|i guess we can|i guess i can|let's do it"
    ),
    "rude": (
        "stupid|dumb|shut up|whatever|i don't care|don't care|nobody cares|bad teacher|worst teacher|"
        "terrible teacher|useless|pointless|ridiculous|lame|idiot|waste of|you're not teaching|"
        "you're annoying|annoying|are you even|hate you|this sucks|who cares|boring thing|get paid|"
        "last teacher|don't get it do you|yeah right|spare me|my brother|little brother"
    ),
    "anxious": (
        "anxious|anxiety|nervous|scared|afraid|worried|worry|panic*|stress*|overwhelm*|i'll fail|"
        "going to fail|what if i|mind has gone blank|gone blank|embarrass*|hands are sweating|stomach|"
        "too slow|i might get it wrong|say something wrong|i'm sorry i|um"
    ),
    "frustrated": (
        "frustrat*|ugh|argh|sighs|fed up|annoy*|come on|hopeless|isn't helping|not helping|isn't helpful|"
        "not helpful|isn't working|not working|makes no sense|make no sense|this is stupid|not fun|"
        "not learning anything|don't like learning|getting nowhere|so complicated|still stuck|could scream|"
        "supposed to understand|don't get it|going round in circles|angry|irritat*|not making it easy|"
        "really not interested|why can't you"
    ),
    "argues": (
        "i disagree|don't agree|not true|that's wrong|prove it|says who|why should|i don't believe|justify|"
        "makes no sense|contradict*|why do we|you can't just|i don't see why|not convinced"
    ),
    "jokes": (
        "joke|joking|kidding|haha|ha|lol|funny|knock knock|laughs|snore|paper plane|my cat|my dog|lunch|"
        "giggles|winks|breaking news|on holiday"
    ),
    "tells": (
        "not how i learn|learn better|learn best|i prefer|i'd prefer|isn't working for me|"
        "doesn't work for me|tell you something|works for me|works better for me|make a suggestion|"
        "be honest|i need|helps me|i'd rather|i like"
    ),
    "disengaged": (
        "bored|boring|not interested|don't care|whatever|yawn*|wasn't listening|stopped listening|"
        "stopped following|zoned out|distracted|doodles|scrolls|stares|looks out|looks away|uh huh|mm|"
        "how long is|break yet|can we stop|are we done|don't want to do this|i lost you|lost interest|"
        "if you say so|i guess|falling asleep|shrugs|silence|don't see how|don't see the point"
    ),
}

# Keywords of a teacher's reaction.
TEACHER = {
    "adapts": (
        "different approach|another approach|try a different|another way|different way|let me adjust|"
        "i'll adapt|adapt|your way|suits you|works for you|work for you|work better for you|"
        "how you like to learn|how do you like|another side|instead|i understand that some|"
        "that sounds like a good idea|we can do that|let's do that|fair point|losing you|"
        "i'll keep that in mind|compromise|we can also|let's see what i can"
    ),
    "insists": (
        "i'd rather|i prefer|i believe in|my way|this is how i|keep lecturing|i'm going to continue|"
        "going to keep|trust me|most effective|more effective|best way|i know what's best|i'm the teacher|"
        "i insist|i won't change|we stay with|we need to cover|have to cover|for years|you'll thank me|"
        "i have a|i still think|stick with|stick to|it's important to|important to engage|let's continue with"
    ),
    "blames": (
        "your fault|not my fault|your problem|not my problem|not trying|not trying hard|pay attention|"
        "you never listen|not listening|weren't listening|you should have|you don't think|cut out for|"
        "if you had|if you wanted|need to respect|need to try harder|not smart enough|your attitude|"
        "that attitude|you're the one|you don't want to learn|must be you|the others understood"
    ),
    "gives_up": (
        "give up|gives up|i'm done|that's it|end the conversation|end the lesson|end this|end here|"
        "stop here|no point|leave it|just leave|forget it|can't help you|can't do this|do what you like|"
        "do whatever|somebody else|someone else|run out of ideas|not going anywhere|going anywhere|i quit|"
        "move on then|never mind"
    ),
    "frustrated": (
        "frustrat*|losing my patience|my patience|how many times|i'm the teacher|that's enough|sighs|sigh|"
        "listen i'm|no listen|end of my rope|why is it so hard|for once|annoy*|all i'm asking|"
        "i've told you|i already|exasperat*|why won't you|so much harder|come on|i'm trying to help you|"
        "drops the chalk|fine"
    ),
    "sarcastic": (
        "how kind|fascinating any|another expert|reinvent|cushion|take my place|worth interrupting|"
        "oh wonderful|oh great|how wonderful|so sorry that|bravo|of course you|genius"
    ),
    "hurries": (
        "quickly|no time|don't have time|hurry|faster|skip|clock|running out of|time is|next point|move on|"
        "short on time|rush"
    ),
    "strict": (
        "the rules|warning|consequences|detention|watch your|one more word|sit up|your parents|your mark|"
        "my class|after school|put that away|behave|silence please|respect"
    ),
    "doubts": (
        "i must be|maybe i'm not|i'm not sure i|perhaps it's me|i'm not so sure|was that wrong|"
        "making it worse|i wish i knew|be patient with me|i'm sorry i|my fault|explaining it badly|"
        "i don't know how to|oh dear"
    ),
}
