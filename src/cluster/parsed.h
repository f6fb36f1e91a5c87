#pragma once

#include "base/parsed.h"

namespace ringbolt::cluster {

using base::Parsed;
using base::ParseError;
using base::refuse;

}  // namespace ringbolt::cluster
