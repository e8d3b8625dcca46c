/* The function that all of crosschip's C libraries share. */
#ifndef CROSSCHIP_H
#define CROSSCHIP_H

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Return the message of this thread's last failure, in any of crosschip's libraries; empty without
 * one. It is valid until the thread's next call.
 */
const char *crosschip_last_error(void);

#ifdef __cplusplus
}
#endif

#endif
