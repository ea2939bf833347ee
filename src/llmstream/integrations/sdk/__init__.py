"""What the accelerations of the openai and the anthropic SDK share.

Both SDKs come from one generator, and both ask their client twice for each stream: for a decoder of its bytes
(``_make_sse_decoder``) and for a function that makes an object of a payload (``_process_response_data``). ``decoder``
answers the first, ``objects`` the second with the help of ``template``, and ``acceleration`` puts them in and takes
them out again.
"""
