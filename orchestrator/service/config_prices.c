/* What a second costs: of rooms of this machine, and of groups of Azure. */
#include <string.h>

#include "orchestrator/service/backend_aci.h"
#include "orchestrator/service/config_private.h"

static struct prices *prices_of(void *out)
{
	return out;
}

static void read_price(struct loader *l, const struct node *value, uint64_t *out)
{
	if (value->kind != NODE_TEXT || !price_parse(value->text, out))
		node_error(l->errs, value, "%s, got %s", price_expected(value->text), node_describe(value).text);
}

static void read_vcpu_second(struct loader *l, const struct node *value, void *out)
{
	read_price(l, value, &prices_of(out)->vcpu);
}

static void read_gb_second(struct loader *l, const struct node *value, void *out)
{
	read_price(l, value, &prices_of(out)->gb);
}

static void read_currency(struct loader *l, const struct node *value, void *out)
{
	config_text(l, value, prices_of(out)->currency, sizeof(prices_of(out)->currency));
}

static void read_all(struct loader *l, const struct node *value, struct prices *out)
{
	static const struct key keys[] = {{WORD("vcpu_second"), read_vcpu_second, KEY_OPTIONAL},
					  {WORD("gb_second"), read_gb_second, KEY_OPTIONAL},
					  {WORD("currency"), read_currency, KEY_OPTIONAL}};
	out->is_set = true;
	section_read(l, value, keys, sizeof(keys) / sizeof(keys[0]), out);
}

void config_prices(struct loader *l, const struct node *value, void *out)
{
	read_all(l, value, &((struct config *)out)->prices);
}

/* cage-aci is told of them too, for `cage bench aci`. */
void config_aci_prices(struct loader *l, const struct node *value, void *out)
{
	struct prices *p = &((struct config *)out)->aci_prices;
	char text[PRICE_TEXT];
	const size_t before = l->errs->n;
	read_all(l, value, p);
	if (p->currency[0] == '-')
		node_error(l->errs, value, "currency: expected the name of one");
	if (l->errs->n > before)
		return;
	price_format(p->vcpu, text);
	maker_set(&aci_maker, "--vcpu-second", text);
	price_format(p->gb, text);
	maker_set(&aci_maker, "--gb-second", text);
	maker_set(&aci_maker, "--currency", p->currency);
}

/* Sums over all sandboxes are in one currency. */
void config_judge_prices(struct config *c, struct loader *l)
{
	struct prices *own = &c->prices;
	const struct prices *far = &c->aci_prices;
	if (!far->is_set)
		return;
	if (own->is_set && strcmp(own->currency, far->currency) != 0)
		error_at(l->errs, (struct where){l->path, 0, 0},
			 "backends.aci.prices.currency: %s, but prices.currency is %s: one for all is needed",
			 far->currency, own->currency);
	memcpy(own->currency, far->currency, sizeof(own->currency));
}
