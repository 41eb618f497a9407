"""The simulator as a server.

server.py        the handler of single calls; hosts.py: the names that it answers to
dialect.py       the declaration of a vendor's dialect, and what all of them share
openai_chat.py   one dialect a file; also openai_responses.py, anthropic.py and gemini.py, whose fields are
                 in gemini_request.py
batch_server.py  the handler of files and batches; openai_batches.py, anthropic_batches.py and
                 gemini_batches.py declare what each vendor's have
batches.py       batches at work, and their files
answering.py     the model that answers single calls and batches
"""
