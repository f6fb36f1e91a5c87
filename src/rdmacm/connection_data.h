#pragma once

#include <rdma/rdma_cma.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "rdmacm/objects.h"

/// What programs pass to rdma_connect and rdma_accept, checked and completed.
namespace ringbolt::rdmacm {

/// A view of the program's memory, for the call alone; empty where there is none.
std::span<const std::byte> private_data_of(const rdma_conn_param* param);
/// `wanted`, but no more than the device can; RDMA_MAX_RESP_RES and its like are simply large.
uint8_t at_most(int wanted, uint8_t limit);
/// EINVAL for more outstanding READs than the device can (port space TCP only), or for nothing to connect.
int check_limits(const char* call, const Id& id, const Device& device, const rdma_conn_param* param);
/// RINGBOLT_EXPLAIN: the events that follow are of this call.
void note_call(Id& id) RINGBOLT_REQUIRES(manager_lock);
/// 24 bits (InfiniBand specification, 9.7.2 counts modulo 2^24). Each thread has dice of its own.
uint32_t random_psn();

}  // namespace ringbolt::rdmacm
