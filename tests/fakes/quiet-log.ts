import type { Log } from '../../src/base/log.ts'

export const QUIET_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} }
