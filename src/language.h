/* The language instaid: see language.c. */
#ifndef INSTAID_LANGUAGE_H
#define INSTAID_LANGUAGE_H

extern void language_init(void);

#endif							/* INSTAID_LANGUAGE_H */
