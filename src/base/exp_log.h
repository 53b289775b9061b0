/* exp_log.h: exp and log that give the same bits on every machine. The C library's do not promise
 * that. */
#ifndef RM_EXP_LOG_H
#define RM_EXP_LOG_H

/* x <= 700. Below -700 the answer is 0. */
double rm_exp(double x);
/* x >= 0. Below 2^-1022, the least normal number, the answer is about -709, which is wrong. */
double rm_log(double x);

#endif
