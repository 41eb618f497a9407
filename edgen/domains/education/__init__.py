"""Education Dialogue: a student and a teacher with preferences and reactions, in the layout of the released
data set."""
