import type { Log } from '../../src/model/log.ts'

export const QUIET_LOG: Log = { debug() {}, info() {}, warn() {}, error() {} }
