import { basename, resolve } from 'node:path'
import { AGENT_NAME } from '../../../base/agent.ts'
import { WORKSPACE_TEMPLATES, type WorkspaceTemplate } from '../../../runs/plan.ts'
import { createWorkspace, prepareInbox, removeFolder, type Withheld } from '../../../workspaces/workspaces.ts'
import type { TeamLocation } from '../../connection/connection.ts'
import { usage } from '../../errors.ts'
import { print, printJson, warn } from '../../output/print.ts'
import type { Verb } from '../../verb.ts'
import { refused } from './find.ts'

export const verb: Verb = {
  name: 'workspace create',
  summary: "create an agent's folder: SKILL.md, inbox, outbox, workspace, status.json",
  details:
    'The folder name is the name of the agent. Copies the given files and folders into its inbox, read-only, and writes\n' +
    'inbox/instructions.md with all sections.',
  arguments: [{ name: 'WORKSPACE' }, { name: 'FILE', optional: true, rest: true }],
  options: [
    {
      name: 'template',
      value: 'TEMPLATE',
      summary: 'the template of its SKILL.md (default: generic)',
      choices: WORKSPACE_TEMPLATES,
    },
    { name: 'objective', value: 'TEXT', summary: 'what the agent should accomplish' },
    { name: 'context', value: 'TEXT', summary: 'what else the agent needs to know' },
  ],
  examples: [
    'orc workspace create researcher --template research --objective "Find who uses SQLite on phones"',
    'orc workspace create agents/sorter names.txt data/ --objective "Sort the names"',
  ],
  async run({ location, words, option, json }) {
    const [named, ...inputs] = words
    const path = resolve(named!)
    const name = basename(path)
    if (!AGENT_NAME.test(name)) {
      throw usage(
        `"${name}" is not a valid agent name`,
        'Start with a letter, then use letters, digits, _ and -.',
      )
    }
    const template = (option('template') ?? 'generic') as WorkspaceTemplate
    const objective = option('objective') ?? ''
    const created = await createWorkspace({ path, name, template, objective })
    if (!created.ok) {
      const isThere = created.error[0]!.code === 'exists'
      throw refused(created.error, isThere ? 'Choose another name.' : 'Choose another folder.')
    }
    const given = { name, objective, context: option('context') ?? '', inputs }
    const left = await fill(path, given, withheldFrom(location, path))
    if (json) printJson({ workspace: path, name, template, left_out: left })
    else {
      print(path)
      for (const { message } of left) warn(message, 'left out')
    }
    return 0
  },
}

interface NewWorkspace {
  name: string
  objective: string
  context: string
  inputs: readonly string[]
}

/** An input folder may contain the state folder or the workspace itself. */
function withheldFrom({ stateFolder }: TeamLocation, workspace: string): Withheld[] {
  const state = 'is the state folder of the service, which holds its tokens'
  return [
    ...(stateFolder === undefined ? [] : [{ path: stateFolder, what: state, isSecret: true }]),
    { path: workspace, what: 'is the workspace itself', isSecret: false },
  ]
}

/** Removes the workspace again if its inbox can't be filled. */
async function fill(
  workspace: string,
  { name, objective, context, inputs }: NewWorkspace,
  withheld: readonly Withheld[],
) {
  const filled = await prepareInbox({
    workspace,
    task: name,
    instructions: {
      objective,
      context,
      inputsProvided: [],
      requirements: [],
      successCriteria: [],
      constraints: [],
      outputExpectations: [],
    },
    inputs: inputs.map((input) => ({ path: resolve(input), to: `inbox/${basename(resolve(input))}` })),
    withheld: () => withheld,
  })
  if (filled.ok) return filled.value.leftOut
  await removeFolder(workspace)
  throw refused(filled.error, 'Nothing was created.')
}
