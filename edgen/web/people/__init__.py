"""Pages on which invited people vote, label and play, and the owner's page about them."""
