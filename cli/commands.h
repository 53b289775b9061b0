/* commands.h: the functions behind the rows of commands[]; each returns the exit code. */
#ifndef CLI_COMMANDS_H
#define CLI_COMMANDS_H

#include "session.h"

int cmd_info(session *s);
int cmd_plan(session *s);
int cmd_plan_of_solution(session *s);
int cmd_bound(session *s);
int cmd_verify(session *s);
int cmd_compare(session *s);
int cmd_curve(session *s);
int cmd_report(session *s);
int cmd_maxbatch(session *s);
int cmd_fuse(session *s);
int cmd_lower(session *s);
int cmd_gen(session *s);
int cmd_import(session *s);
int cmd_place(session *s);
int cmd_maxflow(session *s);
int cmd_completion(session *s);

#endif
