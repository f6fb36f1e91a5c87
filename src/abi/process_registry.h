#pragma once

#include <memory>

#include "device/process.h"

namespace ringbolt::abi {

struct Context;

/// The device-side process object for a fabric: made at the first open, shared by all contexts, gone with the last.
/// Throws base::Error. Thread-safe.
std::shared_ptr<device::Process> process_for(const std::shared_ptr<device::Fabric>& fabric);

/// Contexts that a forked child must find dead. Thread-safe.
/// Not owned: forget() comes before it is deleted.
void remember(Context* context);
void forget(Context* context);

}  // namespace ringbolt::abi
