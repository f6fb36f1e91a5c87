#pragma once

#include <infiniband/verbs.h>

#include <cstdint>

#include "device/port.h"

/// What a port's profile says to objects before they are made. Each returns 0, or the error number for the program
/// after telling it why. Thread-safe.
namespace ringbolt::device {

int check_pd(const Port& port);
int check_cq(const Port& port, uint32_t cqe);
int check_channel(const Port& port);
int check_srq(const Port& port);
int check_address_handle(const Port& port);
int check_window(const Port& port);
int check_region(const Port& port, uint64_t address, uint64_t length, uint64_t iova, uint32_t access);
/// Also raises the depths in `wanted` to what the profile grants.
int check_qp(const Port& port, ibv_qp_init_attr& wanted);

/// The bit of profile::QpTypes; 0 for a type that no profile knows.
uint8_t type_bit(ibv_qp_type type);

}  // namespace ringbolt::device
