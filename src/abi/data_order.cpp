#include <infiniband/verbs.h>

extern "C" {

/// Whether a reader that polls the last byte of an incoming message may take the bytes before it as written. Copies run
/// through the processor's string instructions, which promise no order: no, for every operation.
int ibv_query_qp_data_in_order(ibv_qp* /*qp*/, ibv_wr_opcode /*op*/, uint32_t /*flags*/) { return 0; }

}  // extern "C"
