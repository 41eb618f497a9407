"""The simulator as a server.

server.py        the handler of single calls; hosts.py: the host names that it accepts
dialect.py       the declaration of a vendor's dialect, and the common parts of all dialects
openai_chat.py   one dialect per file; also openai_responses.py, anthropic.py and gemini.py, whose fields are
                 in gemini_request.py
batch_server.py  the handler of files and batches; openai_batches.py, anthropic_batches.py and
                 gemini_batches.py declare the vendors' formats
batches.py       running batches, and their files
answering.py     the model that answers single calls and batches
"""
