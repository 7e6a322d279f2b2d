/* The steps of a move, in the order of the table of state.c.  A step can be done again after a crash. */
#ifndef MOVE_STEPS_H
#define MOVE_STEPS_H

#include "state.h"

extern int	step_begin(Move *m);
extern int	step_create_slot(Move *m);
extern int	step_define(Move *m);
extern int	step_enable(Move *m);
extern int	step_follow(Move *m);
extern int	step_make_way_back(Move *m);
extern int	step_drop_way_back(Move *m);
extern int	step_switch(Move *m);
extern int	step_serve_again(Move *m);
extern int	step_dump(Move *m);
extern int	step_end_copy(Move *m);
extern int	step_drop_publication(Move *m);
extern int	step_start_way_back(Move *m);
extern int	step_mark_moved(Move *m);
extern int	step_compare(Move *m);
extern int	step_detach(Move *m);
extern int	step_drop_slots(Move *m);
extern int	step_drop_copy(Move *m);
extern int	step_end(Move *m);

#endif
