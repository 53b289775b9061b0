/* fastsa.h: the formulas of fastsa.c that tests hold against the paper. */
#ifndef RM_FASTSA_H
#define RM_FASTSA_H

double rm_fastsa_strict(double budget, double memory, double cost); /* footnote 2 */
double rm_fastsa_heat(double first, double share); /* D.4: the temperature after a share of a leg */

#endif
