"""Tasks cut from conversations: answers that were ranked or labelled by somebody, checked and scored."""
