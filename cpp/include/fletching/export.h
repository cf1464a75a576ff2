/* SPDX-License-Identifier: Apache-2.0
 *
 * Visibility of the C functions. libfletching exports them. A program or library that compiles the
 * core keeps them private. Users of libfletching on Windows define FLETCHING_SHARED. */
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
