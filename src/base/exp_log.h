/* exp_log.h: exp and log that give the same bits on every machine. The C library's do not promise
 * that. */
#ifndef RM_EXP_LOG_H
#define RM_EXP_LOG_H

double rm_exp(double x); /* x <= 700; below -700 it is 0 */
double rm_log(double x); /* x >= 0; below 2^-1022, the least normal number, it is wrong: about -709 */

#endif
