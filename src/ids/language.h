/* The language instaid: see language.c. */
#ifndef INSTAID_LANGUAGE_H
#define INSTAID_LANGUAGE_H

extern void language_init(void);
extern uint64 language_invalidations(void);

#endif							/* INSTAID_LANGUAGE_H */
