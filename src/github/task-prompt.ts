import { excerpt } from '../base/excerpt.ts'
import { FENCE_RULE, fence } from '../llm/fence-untrusted-text.ts'
import { encodeTeamMessage, type TaskDelegation } from './core/protocol.ts'
import { TEAM_ROLES } from './team-settings.ts'

const ROLE_PROMPTS: Readonly<Record<(typeof TEAM_ROLES)[number], string>> = {
  triage: [
    'You triage the issues of a repository. Propose up to three labels: bug, enhancement, documentation, question, or',
    'others that this issue or the related issues already use. If a related issue is surely the same problem, propose',
    'close_issue with duplicate_of. If a bug report lacks details that are needed to reproduce the bug, propose one',
    'comment that asks for them.',
  ].join('\n'),
  concierge: [
    'You welcome people who are new to a repository. Propose one short, warm comment (comment_posted) that thanks them,',
    'answers what can be answered from the documents named below, and says what happens next. Promise nothing in the',
    'name of the maintainers. If there is nothing useful to say, propose nothing.',
  ].join('\n'),
  lifecycle: [
    'You look after pull requests. Propose labels, and one comment or review (review_posted) if the author has to do',
    'something: a missing description, a missing link to the issue, tests, a failing check. You neither approve nor merge.',
  ].join('\n'),
  scribe: [
    'You look after the documentation. Say in flags.documentation_gap what the documentation lacks. Propose a comment',
    'with the text to add and the place for it, or a branch and a pull request for a larger change.',
  ].join('\n'),
  community: [
    'You look after the tone and the health of a project. Most comments need no action: propose nothing then, with a',
    'rationale of one sentence. Never write about the behaviour of a person in a proposal, a rationale or a comment.',
  ].join('\n'),
}
/** The prompt of all other roles. */
const OTHER_ROLE = 'You work on a repository on GitHub, in the role that your team gave you.'

function promptOf(role: string): string {
  const known = TEAM_ROLES.find((one) => one === role)
  return known === undefined ? OTHER_ROLE : ROLE_PROMPTS[known]
}

/** Enough of a body to judge it, without the whole of a pasted log (S3.18). */
const MAX_BODY = 12_000
const MAX_TITLE = 500
/** The field names of the protocol are longer than ours. */
const ENVELOPE_BYTES = 2000

const EXAMPLE_REPORT = {
  status: 'success',
  confidence_score: 0.97,
  actions_taken: [{ action_type: 'label_applied', details: { label: 'bug' }, confidence: 0.97 }],
  rationale: 'One to three sentences: why.',
  requires_human_review: false,
}

const RULES = [
  'You cannot act on GitHub: actions_taken lists the actions you propose. The service checks them, asks people where',
  'needed, and performs them. action_type is one of label_applied {label}, comment_posted {body}, review_posted {body},',
  'branch_created {branch, files: [{path, content}], message}, pr_created {head, base, title, body, files: [{path, content}]},',
  'close_issue {duplicate_of, reason}. With files, the branch gets one commit with them. An issue_number in details',
  'names another thread than the one of your task. An empty list is a valid answer.',
  'Every proposal has a confidence between 0 and 1: how sure you are that a maintainer would do the same.',
  'The rationale is public and has at most 1000 characters.',
]

/** The text of a task: the role, the answer format, and the fenced delegation (S3.3–S3.7), whose content is untrusted. */
export function taskPrompt(role: string, delegation: TaskDelegation, maxBytes: number): string {
  const head = [
    // The first line is the title of the task (C13).
    delegation.task.description,
    '',
    promptOf(role),
    '',
    ...RULES,
    '',
    'Report completed. The result must be one JSON object and nothing else, such as:',
    JSON.stringify(EXAMPLE_REPORT),
    'If you cannot do it: {"status": "failure", "rationale": "…", "error": {"error_type": "insufficient_context",',
    '"error_message": "…", "is_recoverable": false}}.',
    '',
    FENCE_RULE,
  ].join('\n')
  const room = maxBytes - Buffer.byteLength(head) - 400
  return `${head}\n\n${fence('task delegation', encodeTeamMessage(fitDelegation(delegation, room)))}`
}

/** Shortens texts until the JSON fits (S3.18), since its size depends on the encoding. */
export function fitDelegation(delegation: TaskDelegation, maxBytes: number): TaskDelegation {
  for (let body = MAX_BODY; ; body = Math.floor(body / 2)) {
    const fitting = shortened(delegation, body)
    if (body === 0 || Buffer.byteLength(JSON.stringify(fitting)) + ENVELOPE_BYTES <= maxBytes) return fitting
  }
}

function shortened(delegation: TaskDelegation, body: number): TaskDelegation {
  const { content, additionalContext: more } = delegation.context
  const part = Math.floor(body / 6)
  const excerpts = more?.excerpts?.map(({ source, text }) => ({ source, text: excerpt(text, part) }))
  return {
    ...delegation,
    context: {
      ...delegation.context,
      content: content && {
        ...content,
        title: content.title && excerpt(content.title, MAX_TITLE),
        body: content.body && excerpt(content.body, body),
      },
      additionalContext: more && { ...more, excerpts: body === 0 ? undefined : excerpts },
    },
  }
}
