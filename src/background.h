/* Background workers, each for one task. */
#ifndef INSTAID_BACKGROUND_H
#define INSTAID_BACKGROUND_H

#include "postmaster/bgworker.h"

extern bool background_start(const char *library, const char *function, const char *type,
							 const void *request, Size size, BackgroundWorkerHandle **handle);
extern void background_begin(void *request, Size size);

#endif							/* INSTAID_BACKGROUND_H */
