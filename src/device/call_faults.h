#pragma once

#include "device/port.h"

/// Faults of calls. Thread-safe.
namespace ringbolt::device {

/// A queue pair of the port is to step to RTR: takes as long as a fault says; 0, or the error number of the refusal.
int inject_at_rtr(const Port& port);

/// A queue pair of the port is to be destroyed: takes as long as a fault says.
void inject_at_destruction(const Port& port);

/// The device is asked for its attributes: takes as long as a fault says.
void inject_at_query(const Port& port);

/// Memory is to be registered: 0, or the error number of the refusal.
int inject_at_registration(const Port& port);

/// A receive is to be posted: ends the program if a fault has pulled the cable and says so.
void inject_at_posting(const Port& port);

}  // namespace ringbolt::device
