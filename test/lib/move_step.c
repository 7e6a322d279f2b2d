/*
 * What 037_move.pl does after a step of instaid-move: the command MOVE_DO, after the step MOVE_AT.
 */
#include <stdlib.h>
#include <string.h>

void		move_step(const char *name);

void
move_step(const char *name)
{
	const char *at = getenv("MOVE_AT");

	if (at && strcmp(at, name) == 0 && system(getenv("MOVE_DO")) != 0)
		exit(99);
}
