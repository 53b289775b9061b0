/* exp_log.h: exp and log that give the same bits on every machine; the C library's do not promise
 * that. */
#ifndef RM_EXP_LOG_H
#define RM_EXP_LOG_H

double rm_exp(double x); /* 0 below -700; x <= 700 */
double rm_log(double x); /* x > 0 and not tiny (normal) */

#endif
