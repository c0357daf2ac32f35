import type { Outbox } from '../workspaces/outbox.ts'
import type { OutputFile } from './run.ts'

/** What an agent has made, as the run knows it. The outbox was collected with its content. */
export function madeOutputs({ outputs }: Pick<Outbox, 'outputs'>): OutputFile[] {
  return outputs.map(({ path, size, sha256 }) => ({ path: `outbox/${path}`, bytes: size, sha256: sha256! }))
}
