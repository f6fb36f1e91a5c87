#pragma once

#include "commands.h"
#include "pair/request.h"
#include "verify/session.h"

namespace ringbolt::tools::verify {

/// What the command line asks for; its library is the caller's. Throws UsageError for what makes no sense, alone or
/// together.
Request request_of(const VerifyOptions& options);

/// The options with a first word that is no mode taken for the host.
VerifyOptions with_host(VerifyOptions options);

}  // namespace ringbolt::tools::verify
