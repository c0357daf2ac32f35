import type { Pane } from '../../src/programs/program.ts'

/** A pane whose process runs and never does anything; `over` is what a test needs of it. */
export function createFakePane(over: Partial<Pane> = {}): Pane {
  return {
    pid: process.pid,
    log: async () => '',
    screen: async () => ({ lines: [''], styled: [''], cursor: { x: 0, y: 0 } }),
    paste: async () => ({ state: 'queued', evidence: 'never' }),
    hasReadInput: async () => true,
    submitPending: async () => false,
    markAccepted() {},
    press: async () => {},
    ...over,
  }
}
