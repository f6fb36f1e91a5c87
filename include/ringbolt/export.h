#pragma once

/// What libringbolt.so shows to programs.
#define RINGBOLT_API __attribute__((visibility("default")))
