/* SPDX-License-Identifier: BSD-2-Clause */
/* Errors are returned as negative values of this list; each has a text. Adding one is one line. */
#ifndef VLAG_LIB_ERRORS_H
#define VLAG_LIB_ERRORS_H

#define VLAG_ERRORS(X)                                                                             \
	X(E_INVAL, 1, "invalid argument")                                                          \
	X(E_NOMEM, 2, "out of memory")                                                             \
	X(E_NOENT, 3, "not found")                                                                 \
	X(E_RANGE, 4, "value out of range")                                                        \
	X(E_FORMAT, 5, "malformed data")                                                           \
	X(E_TRUNC, 6, "data ends too early")                                                       \
	X(E_UNSUPP, 7, "not supported")                                                            \
	X(E_BUSY, 8, "busy")                                                                       \
	X(E_FAULT, 9, "bad guest address")                                                         \
	X(E_IO, 10, "input/output error")

enum vlag_error {
#define X(name, value, text) name = -(value),
	VLAG_ERRORS(X)
#undef X
};

/* Text for a negative enum vlag_error; never NULL. */
static inline const char *error_text(int err)
{
	switch (err) {
#define X(name, value, text)                                                                       \
	case name:                                                                                 \
		return text;
		VLAG_ERRORS(X)
#undef X
	default:
		return err ? "unknown error" : "success";
	}
}

#endif
