/** The two texts that tell an agent what to do: SKILL.md, its role and the protocol; and inbox/instructions.md, its task. */
import type { PlanInstructions, WorkspaceTemplate } from '../runs/plan.ts'
import { failed, problem, type WorkspaceResult } from './problem.ts'

/** The required sections, in order (S4.5). */
export const SECTIONS = [
  'Objective',
  'Context',
  'Inputs Provided',
  'Requirements',
  'Success Criteria',
  'Constraints',
  'Output Expectations',
] as const
type Section = (typeof SECTIONS)[number]

/** Fills empty sections, so that every section exists. */
const NOTHING = 'None.'

/** Lines of user text that look like one of our headings or like `None.` get a backslash. */
const SPECIAL = new RegExp(
  `^\\\\*(?:# Task:|## (?:${SECTIONS.join('|')})[ \\t]*$|${NOTHING.replace('.', '\\.')}$)`,
  'i',
)

/** Formats inbox/instructions.md with exactly these sections. */
export function formatInstructions(task: string, instructions: PlanInstructions): string {
  const content: Record<Section, string> = {
    Objective: escapeText(tidy(instructions.objective)),
    Context: escapeText(tidy(instructions.context)),
    'Inputs Provided': formatItems(instructions.inputsProvided, () => '- '),
    Requirements: formatItems(instructions.requirements, (index) => `${index + 1}. `),
    'Success Criteria': formatItems(instructions.successCriteria, () => '- [ ] '),
    Constraints: formatItems(instructions.constraints, () => '- '),
    'Output Expectations': formatItems(instructions.outputExpectations, () => '- '),
  }
  const sections = SECTIONS.map((section) => `## ${section}\n${content[section] || NOTHING}\n`)
  return `# Task: ${tidy(task).replace(/\s*\n\s*/g, ' ')}\n\n${sections.join('\n')}`
}

interface InboxContents {
  readonly inputs: readonly { readonly to: string; readonly description?: string }[]
  readonly dependencies: readonly { readonly agent: string; readonly copyTo: string }[]
  /** Requested deliverables. */
  readonly outputs: readonly string[]
}

const ANY_DELIVERABLE = 'Place main deliverable in `outbox/`'
const SUMMARY_TOO = 'Include summary in `outbox/summary.md`'

/** True for lines that every agent gets, because they are added wherever they are missing. */
export const isExpectedAnyway = (line: string) => line === ANY_DELIVERABLE || line === SUMMARY_TOO

/** Fills empty sections with what follows from the plan. The summary is always required (S4.7). */
export function fillIn(
  instructions: PlanInstructions,
  { inputs, dependencies, outputs }: InboxContents,
): PlanInstructions {
  const { inputsProvided, outputExpectations } = instructions
  const provided = [
    ...inputs.map(({ to, description }) => `${code(fromInbox(to))}${description ? ` - ${description}` : ''}`),
    ...dependencies.map(({ agent, copyTo }) => `${code(`${fromInbox(copyTo)}/`)} - Outputs of ${agent}`),
  ]
  const expected =
    outputExpectations.length > 0
      ? outputExpectations
      : outputs.length > 0
        ? outputs.map((output) => `Place ${code(output)}`)
        : [ANY_DELIVERABLE]
  const hasSummary = expected.some((line) => line.includes('summary.md'))
  return {
    ...instructions,
    inputsProvided: inputsProvided.length > 0 ? inputsProvided : provided,
    outputExpectations: hasSummary ? expected : [...expected, SUMMARY_TOO],
  }
}

const fromInbox = (path: string) => path.replace(/^inbox\/(?=.)/, '').replace(/\/+$/, '')

/** Puts more backticks around a name than it has inside. */
function code(name: string): string {
  const longest = Math.max(0, ...[...name.matchAll(/`+/g)].map(([run]) => run.length))
  const pad = longest === 0 ? '' : ' '
  const fence = '`'.repeat(longest + 1)
  return `${fence}${pad}${name}${pad}${fence}`
}

function formatItems(items: readonly string[], mark: (index: number) => string): string {
  return items
    .map(tidy)
    .filter((item) => item !== '')
    .map((item, index) => mark(index) + indentRest(escapeText(item), ' '.repeat(mark(index).length)))
    .join('\n')
}

function indentRest(text: string, indent: string): string {
  return text.replace(/\n(?!\n)/g, `\n${indent}`)
}

function escapeText(text: string): string {
  return text
    .split('\n')
    .map((line) => (SPECIAL.test(line) ? `\\${line}` : line))
    .join('\n')
}

function unescapeText(text: string): string {
  return text
    .split('\n')
    .map((line) => (line.startsWith('\\') && SPECIAL.test(line) ? line.slice(1) : line))
    .join('\n')
}

/** Normalizes line ends and trims the lines and the text. */
export function tidy(text: string): string {
  return text
    .replace(/\r\n?|[\u2028\u2029]/g, '\n')
    .replace(/[^\S\n]+$/gm, '')
    .trim()
}

const HEADING = new RegExp(`^## (${SECTIONS.join('|')})[ \\t]*$`, 'i')
const TITLE = /^# Task:[ \t]*(.*)$/i
/** All common list markers: people do not use only ours. */
const MARK = /^(?:[-*+]|\d+[.)])[ \t]+/
const BOXED_MARK = /^(?:[-*+]|\d+[.)])[ \t]+(?:\[[ xX]\][ \t]+)?/

export interface ReadInstructions {
  readonly task: string
  readonly instructions: PlanInstructions
}

/** Parses instructions.md written by Orchub or a person: any order, any list markers; missing sections are empty. */
export function parseInstructions(content: string): WorkspaceResult<ReadInstructions> {
  let task: string | undefined
  const sections = new Map<string, string[]>()
  let current: string[] | undefined
  for (const line of tidy(content).split('\n')) {
    const heading = HEADING.exec(line)
    if (heading !== null) {
      current = []
      sections.set(heading[1]!.toLowerCase(), current)
    } else if (current === undefined) task ??= TITLE.exec(line)?.[1]
    else current.push(line)
  }
  if (task === undefined && sections.size === 0) {
    return failed(problem('invalid', 'instructions.md', 'has neither "# Task:" nor any of its sections'))
  }
  const textOf = (section: Section) => {
    const text = tidy((sections.get(section.toLowerCase()) ?? []).join('\n'))
    return text === NOTHING ? '' : text
  }
  const itemsOf = (section: Section, mark = MARK) => splitItems(textOf(section), mark)
  const instructions = {
    objective: unescapeText(textOf('Objective')),
    context: unescapeText(textOf('Context')),
    inputsProvided: itemsOf('Inputs Provided'),
    requirements: itemsOf('Requirements'),
    successCriteria: itemsOf('Success Criteria', BOXED_MARK),
    constraints: itemsOf('Constraints'),
    outputExpectations: itemsOf('Output Expectations'),
  }
  return { ok: true, value: { task: task ?? '', instructions } }
}

/** Items begin at the margin; indented lines belong to the item above. */
function splitItems(text: string, marks: RegExp): string[] {
  const items: { indent: number; lines: string[] }[] = []
  for (const line of text === '' ? [] : text.split('\n')) {
    const mark = marks.exec(line)
    const last = items.at(-1)
    if (mark !== null) items.push({ indent: mark[0].length, lines: [line.slice(mark[0].length)] })
    else if (last === undefined) items.push({ indent: 0, lines: [line] })
    else last.lines.push(outdent(line, last.indent))
  }
  return items.map(({ lines }) => unescapeText(tidy(lines.join('\n')))).filter((item) => item !== '')
}

function outdent(line: string, most: number): string {
  const spaces = /^ */.exec(line)![0].length
  return line.slice(Math.min(spaces, most))
}

interface Skill {
  readonly name: string
  readonly template: WorkspaceTemplate
  /** Purpose of the agent; the task itself is in the instructions. */
  readonly objective: string
  readonly hasWorktree?: boolean
  /** Path to the message queue for the agent, if there is one (S4.16). */
  readonly messages?: string
}

/** SKILL.md: the agent's role and the file protocol, which any agent that can use files can follow. */
export function formatSkill(skill: Skill): string {
  const { name, template, objective } = skill
  const { role, approach, deliverable } = TEMPLATE[template]
  return [
    '---',
    `name: ${name}`,
    `description: ${JSON.stringify(oneLine(objective))}`,
    '---',
    '',
    `# ${name}`,
    '',
    `You are ${role}.`,
    '',
    '## Objective',
    objective,
    '',
    '## Approach',
    ...approach.map((line) => `- ${line}`),
    '',
    '## Deliverables',
    ...deliverable.map((line) => `- ${line}`),
    '',
    '## Communication Protocol',
    'You and the orchestrator communicate only through files in this folder.',
    '',
    '1. Set `state` in `status.json` to `running` and `started` to the time (UTC, ISO 8601).',
    '2. Read `inbox/instructions.md`, then the other files of `inbox/`. Do not change anything in `inbox/`: every change is detected.',
    '   `inbox/references.json`, if it exists, lists files that were too large to copy; read them at the paths it gives.',
    '3. Work in `workspace/`. It is your scratch space and is never collected.',
    ...(skill.hasWorktree
      ? ['   `worktree/` is a git worktree on your own branch. Commit there; do not merge or push.']
      : []),
    '4. As you go, update `progress` in `status.json`: `current_step`, `steps_completed`, `total_steps`.',
    '5. Put the results into `outbox/`, and describe in `outbox/summary.md` in a few sentences what you did. Both are required.',
    '   `outbox/changelog.md`, `outbox/issues.md`, `outbox/metadata.json` and a folder `outbox/data/` are optional.',
    '   Plain files and folders only: links are not followed.',
    '6. When everything is in place, set `state` to `completed` and `completed` to the time. Write nothing after that.',
    '',
    'If you cannot continue, write `outbox/error_report.md` with the headings `# Error Report`, `## Error Type`, `## Description`,',
    '`## Attempted Recovery`, `## Suggested Resolution`, `## Partial Work`; put what you have into `outbox/partial/`; then set',
    '`state` to `failed` and `error` to `{"type": …, "message": …, "details": …, "recoverable": true or false}`.',
    '',
    'The state goes from `pending` to `running` to `completed` or `failed`, and never back. Keep the fields of `status.json` that you do',
    'not know. Write a temporary file in this folder and rename it to `status.json`, so that an incomplete file is never read.',
    ...(skill.messages === undefined ? [] : ['', ...messageLines(name, skill.messages)]),
    '',
  ].join('\n')
}

function messageLines(name: string, folder: string): string[] {
  return [
    `To send a message, write a file \`${name}_to_{agent}_NNN.json\` in \`${folder}\`, where NNN is one more than the highest`,
    'number there. Write it under a temporary name, then rename it:',
    '`{"from": …, "to": …, "timestamp": …, "type": "data_ready" | "question" | "answer" | "update", "content": …}`.',
  ]
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= 200 ? line : `${line.slice(0, 199)}…`
}

interface Template {
  /** The role, as the end of "You are …". */
  readonly role: string
  readonly approach: readonly string[]
  /** Required content of its deliverable. */
  readonly deliverable: readonly string[]
}

/** Guidance for each kind of agent; its task is in its instructions. */
const TEMPLATE: Record<WorkspaceTemplate, Template> = {
  research: {
    role: 'a researcher who finds out what is known and says where it comes from',
    approach: [
      'Note the questions to be answered before you look for answers.',
      'Prefer primary sources; look for what contradicts a finding as well as for what supports it.',
      'Separate what a source says from what you conclude from it.',
    ],
    deliverable: [
      'The findings, each with its source and how sure it is.',
      'What you could not find out.',
      'The list of sources.',
    ],
  },
  code: {
    role: 'a software developer who makes small changes that work',
    approach: [
      'Read the code around a change first, and keep to its style.',
      'Build the smallest thing that meets the requirements; write tests along with it.',
      'Run the tests and checks before you report completion.',
      'If you have a git worktree, commit your work there in small steps, with messages that say why.',
    ],
    deliverable: [
      'The code, or a patch; in a worktree, the commits.',
      'Its tests, and how to run them.',
      'What you left out on purpose.',
    ],
  },
  analysis: {
    role: 'an analyst who draws conclusions from data so that others can verify them',
    approach: [
      'Inspect the data before you trust it: what is missing, duplicated or out of range?',
      'Say which method you use and why; make every number reproducible.',
      'Distinguish results from noise, and causes from correlations.',
    ],
    deliverable: [
      'The results with the numbers behind them.',
      'The method, with scripts where you used any.',
      'What the data cannot show.',
    ],
  },
  writer: {
    role: 'a writer whose readers understand the text at first reading',
    approach: [
      'Find out from the instructions who will read it, and what they should know or do afterwards.',
      'Use only facts from the inbox; mark what you could not confirm.',
      'Write, cut what is not needed, then read it once more as a reader would.',
    ],
    deliverable: ['The finished text in the requested form.', 'Open questions, if any.'],
  },
  review: {
    role: 'a reviewer who finds what is wrong before the users do',
    approach: [
      'Check the work against its requirements, one by one, before anything else.',
      'Try it out where you can: a problem that you have seen counts more than one that you suspect.',
      'Say what is wrong, where, how serious it is, and how to fix it. Do not rewrite the work.',
    ],
    deliverable: [
      'A verdict: accepted, accepted with changes, or not accepted.',
      'The findings, worst first, each with its location.',
      'What you did not review.',
    ],
  },
  integration: {
    role: 'an integrator who combines the work of several agents into one result',
    approach: [
      'List what each of them delivered and what is missing.',
      'Where they contradict each other, find out who is right; if you cannot, say so and keep both versions.',
      'Change the parts as little as possible; check the whole.',
    ],
    deliverable: [
      'The combined result, ready to use.',
      'Which part came from which agent.',
      'Contradictions, and how each was resolved.',
    ],
  },
  generic: {
    role: 'an agent with one task',
    approach: [
      'Read everything in the inbox before you start.',
      'Work in small steps, and check the result of each.',
      'Check the result against the success criteria before you report completion.',
    ],
    deliverable: ['Everything that the instructions ask for.'],
  },
}
