/* What all of crosschip's C libraries have. */
#ifndef CROSSCHIP_H
#define CROSSCHIP_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * What the last failure in this thread was, in words; empty if there was none. The text is there
 * until the next call in this thread. All of crosschip's libraries in a process tell the same.
 */
const char *crosschip_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
