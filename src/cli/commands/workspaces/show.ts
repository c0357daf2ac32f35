import { surveyAgents } from '../../../workspaces/dissolve/dissolve.ts'
import { print, printJson } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { findWorkspaces, inspect } from '../find-workspaces.ts'
import { findOwningRun } from '../owning-run.ts'
import { noteLines, workspaceFacts, workspacesText, workspaceText } from './workspace-text.ts'

export const verb: Verb = {
  name: 'workspace show',
  summary: 'show the progress and contents of a workspace, or of all in a folder',
  arguments: [{ name: 'FOLDER', optional: true }],
  examples: ['orc workspace show', 'orc workspace show researcher', 'orc workspace show runs/run_1 --json'],
  async run({ words, json, location }) {
    const found = findWorkspaces(words[0] ?? '.')
    const agents = await inspect(found, await findOwningRun(location, found.path))
    const records = await surveyAgents({ agents })
    if (json) {
      for (const [index, record] of records.entries()) {
        printJson(workspaceFacts(record, found.agents[index]!.workspace))
      }
    } else if (found.isOne) print(workspaceText(records[0]!))
    else print([workspacesText(records), ...records.flatMap(noteLines)].join('\n'))
    return 0
  },
}
