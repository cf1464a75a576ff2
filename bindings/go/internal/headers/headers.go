// SPDX-License-Identifier: Apache-2.0

// Package headers has the headers of the repository that the tests of the module include. They are copies, because
// a published module has no file from outside its folder.
package headers
