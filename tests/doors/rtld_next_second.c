/* SPDX-License-Identifier: Apache-2.0 */
/* The second library of the chain, whose functions the first one looks for. */
#include "rtld_next.h"


int chain_value(void)
{
    return 100;
}

int cuChainValue(void)
{
    return 200;
}

int cuchain_value(void)
{
    return 300;
}
