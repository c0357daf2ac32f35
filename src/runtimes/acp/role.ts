/** Where a role is given in a turn: what it is, and in a frame that the scanner skips when an agent quotes it (C4). */
export function frameRole(prompt: string, occasion: 'start' | 'resumed' | 'compacted'): string {
  return [
    '[ORCHUB MESSAGE role]',
    'From: orchestrator',
    `Title: ${TITLES[occasion]}`,
    '',
    prompt,
    '',
    '[END ORCHUB MESSAGE role]',
  ].join('\n')
}

const TITLES = {
  start: 'Your role, and how you work with the others. No answer is needed.',
  resumed: 'Your role again, since this conversation was taken up again. No answer is needed.',
  compacted: 'Your role again, since your context was compacted. No answer is needed.',
} as const
