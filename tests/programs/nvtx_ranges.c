/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that marks its ranges by NVTX in every way there is and prints
 * what it gets for that. Knows nothing of cgshim: its output is the same
 * without an NVTX tool and under cgshim without one. `nvtx_ranges N` does it
 * in N processes, each executed by the one before.
 */
#include <nvtx3/nvToolsExt.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static nvtxEventAttributes_t event(int32_t type, const void *message)
{
    nvtxEventAttributes_t attributes = {0};

    attributes.version       = NVTX_VERSION;
    attributes.size          = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType   = type;
    attributes.message.ascii = message;
    return attributes;
}

static void default_domain(void)
{
    nvtxEventAttributes_t attributes = event(NVTX_MESSAGE_TYPE_ASCII, "event");
    nvtxRangeId_t id;

    printf("stray pop %d\n", nvtxRangePop());
    printf("push %d\n", nvtxRangePushA("outer"));
    printf("push %d\n", nvtxRangePushW(L"w\u00efde"));
    printf("push %d\n", nvtxRangePushEx(&attributes));
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());
    printf("pop %d\n", nvtxRangePop());

    id = nvtxRangeStartA("started");
    nvtxMarkA("mark");
    nvtxRangeEnd(id);
    nvtxRangeEnd(id);
}

static void own_domain(void)
{
    nvtxDomainHandle_t domain        = nvtxDomainCreateA("solver");
    nvtxEventAttributes_t attributes =
        event(NVTX_MESSAGE_TYPE_REGISTERED,
              nvtxDomainRegisterStringA(domain, "step"));
    nvtxRangeId_t id;

    printf("domain push %d\n", nvtxDomainRangePushEx(domain, &attributes));
    printf("domain pop %d\n", nvtxDomainRangePop(domain));
    printf("domain stray pop %d\n", nvtxDomainRangePop(domain));

    id = nvtxDomainRangeStartEx(domain, &attributes);
    nvtxDomainMarkEx(domain, &attributes);
    nvtxDomainRangeEnd(domain, id);
    nvtxDomainDestroy(domain);
}

int main(int argc, char **argv)
{
    int rest = (argc > 1) ? atoi(argv[1]) : 1;
    char number[16];

    default_domain();
    own_domain();
    fflush(stdout);

    if (rest > 1) {
        snprintf(number, sizeof(number), "%d", rest - 1);
        execl(argv[0], argv[0], number, (char*)NULL);
        return 1;
    }
    return 0;
}
