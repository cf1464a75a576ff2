/* SPDX-License-Identifier: Apache-2.0
 *
 * Who can see the functions of the C library: everybody who links libfletching; of the core, when
 * it is compiled into a program or library, only that one. A user of libfletching on Windows
 * defines FLETCHING_SHARED. */
#ifndef FLETCHING_EXPORT_H
#define FLETCHING_EXPORT_H

#if defined(_WIN32) && defined(FLETCHING_BUILDING_SHARED)
#define FLETCHING_EXPORT __declspec(dllexport)
#elif defined(_WIN32) && defined(FLETCHING_SHARED)
#define FLETCHING_EXPORT __declspec(dllimport)
#elif defined(_WIN32)
#define FLETCHING_EXPORT
#elif defined(FLETCHING_BUILDING_SHARED)
#define FLETCHING_EXPORT __attribute__((visibility("default")))
#elif defined(FLETCHING_BUILDING_CORE)
#define FLETCHING_EXPORT __attribute__((visibility("hidden")))
#else
#define FLETCHING_EXPORT
#endif

#endif /* FLETCHING_EXPORT_H */
