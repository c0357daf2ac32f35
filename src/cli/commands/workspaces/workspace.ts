import type { Verb } from '../../verb.ts'
import { verb as show } from './show.ts'

/** The same as `workspace show`, and where help and completion find the others. */
export const verb: Verb = {
  ...show,
  name: 'workspace',
  summary: 'the workspaces in a folder, as workspace show; needs no service',
  examples: ['orc workspace', 'orc workspace runs/run_1', 'orc workspace create researcher'],
}
