/* doctor/decode.h: bytes as they lie in a file or come through a pipe, into text. Private to the folder. */
#ifndef FELLOE_DOCTOR_DECODE_H
#define FELLOE_DOCTOR_DECODE_H

#include "base/base.h"

struct decoder;
typedef void (*decoder_sink)(void *context, span text);

/* gzip (any number of members) is inflated, UTF-16 becomes UTF-8, a byte-order mark is dropped. The first four bytes decide. */
struct decoder *decoder_new(decoder_sink sink, void *context);
void decoder_free(struct decoder *d);
void decoder_feed(struct decoder *d, span bytes);
/* True once the first bytes have shown that the text is taken as it is: the caller may then skip the decoder. */
bool decoder_is_plain(const struct decoder *d);
/* At the end; false when the gzip stream was damaged or cut. */
bool decoder_end(struct decoder *d);

/* Copies text without terminal escape sequences and with each lone CR as a line end; CR LF is one line end. The positions in
 * `out` of line ends that an editor would not count go to `extra` (room for text.n). Returns the number of bytes written, at
 * most text.n. */
size_t clean_text(span text, char *out, uint32_t *extra, size_t *extra_count);

#endif
