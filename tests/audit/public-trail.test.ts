import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isPublic, openPublicChain, publicLine, publicTitle } from '../../src/audit/public-trail.ts'
import { isPublicTrail, PUBLIC_FORMATS, verifyPublicTrail } from '../../src/audit/public-trail-file.ts'

const HOSTILE = fc.constantFrom(...'a<&"\n\r\\→[]# {}:\u202e\u2028😀é')
const FORMS = ['text', 'jsonl', 'html'] as const

function entryOf(text: string, n: number) {
  const at = new Date(1_760_000_000_000 + n * 1000).toISOString()
  return { at, type: 'github.task', class: 'public' as const, actor: 'orchestrator', subject: 'triage', text }
}

function trail(texts: readonly string[], form: (typeof FORMS)[number], repository?: string) {
  const title = publicTitle(repository)
  const chain = openPublicChain(title)
  const write = PUBLIC_FORMATS[form]!
  let file = write.begin(title)
  for (const [n, text] of texts.entries()) file += write.line(chain.add(publicLine(entryOf(text, n))))
  return { file: file + write.end(chain.head()), head: chain.head() }
}

async function* linesOf(file: string) {
  yield* file.replace(/\n$/, '').split('\n')
}

const TEXTS = ['Triage issue #1', "Done: apply the label 'bug' to #1 <b>&amp;</b>", '# lines 3 sha256 0']

describe('the public trail', () => {
  it('has the lines of the specification (S3.22)', () => {
    expect(publicLine({ ...entryOf('Triage new issue #123', 0), at: '2025-10-20T14:30:00Z' })).toBe(
      '[2025-10-20T14:30:00Z] [orchestrator→triage] TASK: Triage new issue #123',
    )
  })

  it('contains public entries, of one repository on request, and never the address of the service', () => {
    const entry = { ...entryOf('x', 0), data: { repository: 'octo/hello' } }
    expect(isPublic(entry)).toBe(true)
    expect(isPublic(entry, 'Octo/Hello')).toBe(true)
    expect(isPublic(entry, 'octo/secret')).toBe(false)
    expect(isPublic({ ...entry, class: 'internal' })).toBe(false)
    expect(isPublic({ ...entry, type: 'service.started' })).toBe(false)
  })

  it.each(FORMS)(
    'as %s is found sound, whatever its lines hold, and every change is found (S3.23)',
    async (form) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(fc.string({ unit: HOSTILE }), { maxLength: 6 }),
          fc.nat(),
          fc.string({ minLength: 1, maxLength: 3 }),
          async (texts, where, put) => {
            const { file, head } = trail(texts, form)
            expect(isPublicTrail(file.split('\n')[0]!)).toBe(true)
            expect(await verifyPublicTrail(linesOf(file))).toMatchObject({
              ok: true,
              count: texts.length,
              head,
            })
            const at = where % file.length
            const changed = file.slice(0, at) + put + file.slice(at)
            expect((await verifyPublicTrail(linesOf(changed))).ok).toBe(false)
            const without = file.slice(0, at) + file.slice(at + 1)
            // The last line end is not part of the trail.
            if (at < file.length - 1) expect((await verifyPublicTrail(linesOf(without))).ok).toBe(false)
          },
        ),
        { numRuns: 100 },
      )
    },
  )

  it.each(FORMS)('as %s names the first bad line, or where it was cut off', async (form) => {
    const { file } = trail(TEXTS, form)
    const changed = await verifyPublicTrail(linesOf(file.replaceAll('label', 'lapel')))
    expect(changed).toMatchObject({ ok: false })
    if (form !== 'text') expect(changed.seq).toBe(2)
    const lines = file.split('\n')
    const cut = await verifyPublicTrail(linesOf(`${lines.slice(0, form === 'html' ? -3 : -2).join('\n')}\n`))
    expect(cut).toMatchObject({ ok: false, message: expect.stringContaining('truncated') })
  })

  it('of an older copy is a prefix of a newer one, and a rewritten one is detected', async () => {
    const older = trail(TEXTS.slice(0, 2), 'html').head
    expect(await verifyPublicTrail(linesOf(trail(TEXTS, 'text').file), older)).toMatchObject({ ok: true })
    const rewritten = trail(['Triage issue #2', ...TEXTS.slice(1)], 'jsonl')
    expect(await verifyPublicTrail(linesOf(rewritten.file), older)).toMatchObject({ ok: false, seq: 2 })
    const shorter = trail(TEXTS.slice(0, 1), 'jsonl')
    expect(await verifyPublicTrail(linesOf(shorter.file), older)).toMatchObject({ ok: false })
  })

  it('can be verified with sha256 alone', async () => {
    const { createHash } = await import('node:crypto')
    const sha = (text: string) => createHash('sha256').update(text).digest('hex')
    const { file, head } = trail(TEXTS, 'text', 'octo/hello')
    const [title, ...rest] = file.trimEnd().split('\n')
    let hash = sha(`${title!.slice(2)}\n`)
    for (const line of rest.slice(0, -1)) hash = sha(`${hash}\n${line}\n`)
    expect(hash).toBe(head.hash)
    expect(rest.at(-1)).toBe(`# lines 3 sha256 ${hash}`)
  })
})
