/* version: the product's version, as --version and every manifest say it. Keep in step with
 * meson.build. */
#pragma once

#define CLEANRUN_VERSION "0.1.0"
