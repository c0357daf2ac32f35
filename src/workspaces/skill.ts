import type { WorkspaceTemplate } from '../runs/plan.ts'
import { TEMPLATE } from './skill-template.ts'

export interface Skill {
  readonly name: string
  readonly template: WorkspaceTemplate
  /** Its purpose; the task itself is in the instructions. */
  readonly objective: string
  readonly hasWorktree?: boolean
  /** The folder of the message queue as the agent reaches it, where there is one (S4.16). */
  readonly messages?: string
}

/** SKILL.md: who the agent is, and how it and its orchestrator understand each other. Any agent that can use files can keep to it. */
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
    'You and the orchestrator speak through files in this folder, and in no other way.',
    '',
    '1. Set `state` in `status.json` to `running` and `started` to the time (UTC, ISO 8601).',
    '2. Read `inbox/instructions.md`, then the other files of `inbox/`. Change nothing in `inbox/`: it is compared afterwards.',
    '   `inbox/references.json`, if it is there, says where files are that were too large to copy; read them there.',
    '3. Work in `workspace/`. It is yours alone; nobody collects it.',
    ...(skill.hasWorktree
      ? [
          '   `worktree/` is a git worktree on a branch of your own. Commit there; do not merge and do not push.',
        ]
      : []),
    '4. As you go, keep `progress` in `status.json`: `current_step`, `steps_completed`, `total_steps`.',
    '5. Put the results into `outbox/`, and what you did into `outbox/summary.md`, in a few sentences. Both are required.',
    '   `outbox/changelog.md`, `outbox/issues.md`, `outbox/metadata.json` and a folder `outbox/data/` are yours to use.',
    '   Plain files and folders only: links are not followed.',
    '6. When all of it is in place, set `state` to `completed` and `completed` to the time. Write nothing after that.',
    '',
    'If you cannot go on, write `outbox/error_report.md` with the headings `# Error Report`, `## Error Type`, `## Description`,',
    '`## Attempted Recovery`, `## Suggested Resolution`, `## Partial Work`; put what you have into `outbox/partial/`; then set',
    '`state` to `failed` and `error` to `{"type": …, "message": …, "details": …, "recoverable": true or false}`.',
    '',
    'The state goes from `pending` to `running` to `completed` or `failed`, and never back. Keep the fields of `status.json` that you do',
    'not know. Write it to a temporary file in this folder and rename that to `status.json`, so that nobody reads half of it.',
    ...(skill.messages === undefined ? [] : ['', ...messageLines(name, skill.messages)]),
    '',
  ].join('\n')
}

function messageLines(name: string, folder: string): string[] {
  return [
    `Messages, if you need them at all, are files in \`${folder}\`: \`${name}_to_{agent}_NNN.json\`, where NNN is one more than the`,
    'highest number there, written under a temporary name and renamed:',
    '`{"from": …, "to": …, "timestamp": …, "type": "data_ready" | "question" | "answer" | "update", "content": …}`.',
  ]
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim()
  return line.length <= 200 ? line : `${line.slice(0, 199)}…`
}
