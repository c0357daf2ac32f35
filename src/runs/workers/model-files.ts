import { z } from 'zod'
import { excerpt } from '../../base/excerpt.ts'
import { FENCE_RULE, fence } from '../../llm/fence.ts'
import type { ModelFailure, Models, ObjectCall } from '../../llm/llm.ts'
import type { Asking } from '../../tasks/validation/judge-prompt.ts'

/** What a model without hands makes: the orchestrator writes it down for it (S4.7). */
export const FileWork = z.object({
  summary: z.string().trim().min(1).max(20_000).describe('What was done, in a few sentences: summary.md.'),
  files: z
    .array(
      z.object({
        path: z
          .string()
          .min(1)
          .max(200)
          .describe('Such as report.md or data/numbers.csv; relative, no "..".'),
        content: z.string().max(400_000).describe('The whole content of the file.'),
      }),
    )
    .min(1)
    .max(50)
    .describe('The deliverables.'),
})
export type FileWork = z.output<typeof FileWork>

export interface GivenFile {
  readonly path: string
  readonly content: string
}

const MOST = { instructions: 40_000, file: 40_000, files: 200_000 }

const SYSTEM = [
  'You do a piece of work that was planned for you. You have no tools: what you are given is all there is, and your',
  'answer is your whole work. Give every deliverable as a file with its full content, and a summary of what you did.',
  FENCE_RULE,
].join('\n')

export function fileWorkPrompt(
  instructions: string,
  files: readonly GivenFile[],
  more = '',
): Pick<ObjectCall, 'system' | 'prompt'> {
  let left = MOST.files
  const given = files.map(({ path, content }) => {
    const shown = excerpt(content, Math.max(0, Math.min(MOST.file, left)))
    left -= shown.length
    return `${path}:\n${fence('file', shown)}`
  })
  const prompt = [
    'The instructions:',
    excerpt(instructions, MOST.instructions),
    ...(given.length === 0 ? ['There are no input files.'] : ['The input files:', ...given]),
    'Do this work now.',
  ].join('\n\n')
  return { system: more === '' ? SYSTEM : `${SYSTEM}\n${more}`, prompt }
}

export async function workByModel(
  models: Models,
  model: string,
  order: { instructions: string; files: readonly GivenFile[]; more?: string },
  asking: Asking = {},
): Promise<({ ok: true } & FileWork) | ModelFailure> {
  const answer = await models.generateObject({
    model,
    schema: FileWork,
    purpose: 'run',
    ...fileWorkPrompt(order.instructions, order.files, order.more),
    ...asking,
  })
  return answer.ok ? { ok: true, ...answer.value } : answer
}
